package awk

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// testHost is a host without files or commands, but those given.
type testHost struct {
	in    string
	files map[string]string
	out   bytes.Buffer
	steps int
	limit int
}

func (h *testHost) Open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(strings.NewReader(h.in)), nil
	}
	if s, ok := h.files[name]; ok {
		return io.NopCloser(strings.NewReader(s)), nil
	}
	return nil, os.ErrNotExist
}

type fileWriter struct {
	h    *testHost
	name string
}

func (w fileWriter) Write(b []byte) (int, error) { w.h.files[w.name] += string(b); return len(b), nil }
func (w fileWriter) Close() error                { return nil }

func (h *testHost) Create(name string, appending bool) (io.WriteCloser, error) {
	if strings.HasPrefix(name, "/dev/std") {
		return struct {
			io.Writer
			io.Closer
		}{&h.out, io.NopCloser(nil)}, nil
	}
	if h.files == nil {
		h.files = map[string]string{}
	}
	if !appending {
		h.files[name] = ""
	}
	return fileWriter{h, name}, nil
}

type fixedPipe struct{ io.Reader }

func (fixedPipe) Write(b []byte) (int, error) { return len(b), nil }
func (fixedPipe) Wait() int                   { return 0 }

// PipeFrom knows the commands of the corpus.
func (h *testHost) PipeFrom(c string) (Pipe, error) {
	return fixedPipe{strings.NewReader(map[string]string{"echo a; echo b": "a\nb\n", "echo hi": "hi\n"}[c])}, nil
}
func (h *testHost) PipeTo(string) (Pipe, error) { return &sortPipe{h: h}, nil }
func (h *testHost) System(string) int           { return 3 }
func (h *testHost) Stdout() io.Writer           { return &h.out }

// sortPipe is sort(1).
type sortPipe struct {
	bytes.Buffer
	h *testHost
}

func (p *sortPipe) Wait() int {
	list := strings.SplitAfter(p.String(), "\n")
	slices.Sort(list)
	p.h.out.WriteString(strings.Join(list, ""))
	return 0
}
func (h *testHost) Flush()            {}
func (h *testHost) Environ() []string { return []string{"A=1"} }
func (h *testHost) Now() time.Time    { return time.Unix(1767225600, 0).UTC() }

var errLimit = errors.New("too long")

func (h *testHost) Hold(int) {}

func (h *testHost) Step() {
	if h.steps++; h.limit > 0 && h.steps > h.limit {
		panic(errLimit)
	}
}

// corpus are programs and their input. testdata/corpus.txt has, line by line,
// what the real busybox printed, and its status.
var corpus = []struct{ src, in string }{
	{`{print $1}`, "a b\nc d\n"},
	{`{print $NF, NF}`, "a b\n\nc d e\n"},
	{`BEGIN{for(i=0;i<70;i++)a["k" i]; for(k in a) printf "%s ", k}`, ""},
	{`BEGIN{for(i=0;i<700;i++)a["k" i]; for(k in a) printf "%s ", k}`, ""},
	{`{a[$1]+=$2} END{for(k in a) print k, a[k]}`, "x 1\ny 2\nx 3\nz 4.5\n"},
	{`BEGIN{print rand(), rand(); print srand(5); print rand()}`, ""},
	{`BEGIN{print length("é"), toupper("abé")}`, ""},
	{`BEGIN{print 1e6, 1e20, 0.1+0.2, 100000*100000, -0, 1/3, 1e300*1e300}`, ""},
	{`BEGIN{print substr("hello",0,2) "|" substr("hello",2) "|" substr("hello",-1,3) "|" substr("hello",1.5,1) "|" substr("hello",9)}`, ""},
	{`BEGIN{print index("abc","c"), index("abc","x"), index("abc","")}`, ""},
	{`BEGIN{x["a"]; delete x; print length(x); x[1]; x[2]; delete x[1]; print length(x), (1 in x), (2 in x)}`, ""},
	{`BEGIN{print 1==1.0, "a"<"b", "10"<"9", 10<9, "a"<1, x<1, x==0, x==""}`, ""},
	{`{print ($1<$2), ($1==$2), ($1<"9")}`, "10 9\n1.0 1\nabc 1\n"},
	{`BEGIN{printf "%c%c|%5.2f|%-5s|%05d|%x|%e|%g|%i|%o|%%|%+d|% d\n", 65, "BC", 3.14159, "ab", 42, 255, 12345.678, 1e-5, 7.9, 8, 3, 4}`, ""},
	{`BEGIN{printf "%.3s|%5.1s|\n", "abcdef", "xyz"}`, ""},
	{`BEGIN{printf "%*d", 5, 42}`, ""},
	{`BEGIN{printf "%.17g %.17g\n", rand(), rand()}`, ""},
	{`BEGIN{printf "%u %x %u %o|%i|%5c|%c|\n", -1, -1, 1e12, 1e12, 3e9, "x", 256+65}`, ""},
	{`BEGIN{printf "%ld", 4}`, ""},
	{`BEGIN{"echo hi" | getline; print NR, $0}`, ""},
	{`{print $1+0, $2+0, $3+0, ($1==8), ($2==31), -"0x10"}`, "010 0x1f 1e3\n"},
	{`BEGIN{print 2147483648, 1e18, 1e19, -1e18, int(3e9), 1e15+0.5, 123456789.123, length(12345.678)}`, ""},
	{`BEGIN{print substr("hello",2,-1) "|" substr("hello",-5) "|" substr("hello", 3, 1e9)}`, ""},
	{`BEGIN{print toupper(1e3); $5="a"; print; print NF; x = "3x"; print x+0, +x, -x; print 1e-320, -0.0, 1/-3}`, ""},
	{`BEGIN{printf "%5%|%05s|%-05d|%+.2e|%#x|%#o|%G\n", "a", 3, 1234.5, 255, 8, 1e-10}`, ""},
	{`BEGIN{a["one long key that overflows"]; a["another long key for the table"]; a["x"]; a["a third one, still longer than the others"]; a["é"]; a["ü"]; for(k in a) print k}`, ""},
	{`{print $NF-1, $(NF-1); print -$1; print !$1; print $1$2; print NR $1}`, "a b\n"},
	{`BEGIN{printf "%s %d\n", "a"}`, ""},
	{`BEGIN{printf "%d %d\n", "0x1A", 1e10}`, ""},
	{`BEGIN{print 0x10, 011, "0x10"+0, "3abc"+1, +"1e2x"}`, ""},
	{`BEGIN{print 1 " " 2, 1" "-1, -1 " " -1, 2 -1, "a" -1}`, ""},
	{`{$2="x"; print; print NF; $5="e"; print; NF=2; print; print $0}`, "a b  c\n"},
	{`BEGIN{OFS="-"}{$1=$1; print; print $1,$2}`, "a b c\n"},
	{`BEGIN{FS=":"}{print $2}`, "a:b:c\n::\n"},
	{`BEGIN{FS=","; OFS=";"} {$3=""; print; print NF}`, "1,2,3,4\n"},
	{`BEGIN{FS="[0-9]+"}{print $2, NF}`, "a1b22c\n"},
	{`BEGIN{FS="|"}{print $2}`, "a|b|c\n"},
	{`BEGIN{FS="\t"}{print $2}`, "a b\tc d\te\n"},
	{`BEGIN{RS=""}{print NR ": " $1 "-" $NF; print NF}`, "\n\na b\nc\n\n\nd e\nf\n"},
	{`BEGIN{RS=";"}{print NR, $0}`, "a;b;c\n"},
	{`BEGIN{RS="[0-9]"}{print NR, $0}`, "a1b2c\n"},
	{`NR==2,NR==3`, "1\n2\n3\n4\n"},
	{`/b/,/c/{print NR": "$0}`, "a\nb\nc\nb\nz\n"},
	{`!/a/`, "a\nb\n"},
	{`$1 ~ /^[0-9]+$/ {n++} END{print n+0}`, "1\na\n22\n"},
	{`$2 > 5 && $1 != "x" || NR == 1 {print $1}`, "a 1\nx 9\nb 7\n"},
	{`END{print NR, $0}`, "a\nb\n"},
	{`function f(n){return n<=1?1:n*f(n-1)} BEGIN{print f(10)}`, ""},
	{`function g(a,i){a["x"]=i; i=5} BEGIN{g(z,3); print z["x"]; y=1; g(z,y); print y}`, ""},
	{`function h(){ exit 3 } BEGIN{h(); print "no"} END{print "end"}`, ""},
	{`BEGIN{exit} END{print "end"}`, ""},
	{`{print; next; print "no"} END{print "e"}`, "a\n"},
	{`BEGIN{while(i<5){i++; if(i==2)continue; if(i==4)break; print i}}`, ""},
	{`BEGIN{do {i++} while(i<5); print i; for(;;){if(i-->0)continue; break}; print i}`, ""},
	{`BEGIN{s="hello world"; print sub(/o/,"0",s), s; print gsub(/o/,"[&]",s), s; gsub("l","\\&",s); print s}`, ""},
	{`BEGIN{s="aaa"; print gsub(/x*/,"-",s), s; t="abc"; gsub(//,"-",t); print t}`, ""},
	{`{gsub(/[ \t]+/,"_"); print}`, "a b\t c\n"},
	{`BEGIN{s="a.b.c"; n=split(s,p,"."); print n,p[1],p[3]; n=split("",p); print n, length(p); n=split("abc",p,""); print n,p[2]}`, ""},
	{`BEGIN{n=split("a1b2c",p,/[0-9]/); print n, p[1] p[2] p[3]; print split(" a  b ",q), q[1] "|" q[2]; print split(",a,",r,","), r[2]}`, ""},
	{`BEGIN{print match("foobar",/o+/), RSTART, RLENGTH; print match("x",/y/), RSTART, RLENGTH}`, ""},
	{`BEGIN{a[1,2]=3; for(k in a){split(k,q,SUBSEP); print q[1],q[2]}; print ((1,2) in a), ((2,1) in a)}`, ""},
	{`BEGIN{print length()}`, ""},
	{`{print length, length($1)}`, "abc de\n"},
	{`BEGIN{getline; print "got " $0; getline x; print x, NR; print getline, $0}`, "a\nb\n"},
	{`BEGIN{while((getline line) > 0) n++; print n}`, "a\nb\n"},
	{`BEGIN{print -3 % 2, 7 % 3, int(-3.7), int("4x"), 5/2}`, ""},
	{`BEGIN{x=5; x+=2; x*=3; x-=1; x/=4; x%=3; print x; print x++ + ++x, x--, --x}`, ""},
	{`BEGIN{print (!0), (!1), (!x), (1&&0), (1||0); print 1?"y":"n"}`, ""},
	{`BEGIN{print 1,2 > "/dev/stdout"; print "a" "b"}`, ""},
	{`BEGIN{if(1)print "a"; else print "b"; if(0){print "c"}else if(1)print "d"
	if (1)
	print "e"
	else
	print "f"}`, ""},
	{`BEGIN { printf("%s-%s\n", "a", "b"); print("x","y"); print (1)(2) }`, ""},
	{`BEGIN { a="x"; b = a "y" "z"; print b; print "a\tb\\n\"q\"\/" ; print "\101" }`, ""},
	{`BEGIN{CONVFMT="%.2g"; a=3.14159; b=a ""; print b; OFMT="%.3f"; print a, 17}`, ""},
	{`BEGIN{$0="x y z"; print $2, NF; $3="q"; print}`, ""},
	{`BEGIN{$3="c"; print NF ":" $0 ":"}`, ""},
	{`{ $0 = $2; print $1, NF }`, "a b c\n"},
	{`BEGIN{print foo(}`, ""},
	{`{`, ""},
	{`BEGIN{print 1/0}`, ""},
	{`BEGIN{f(1)}`, ""},
	{`BEGIN{print "unterminated}`, ""},
	{`BEGIN{print substr("hello", 2, 100), toupper(substr("abc",1,1)) substr("abc",2)}`, ""},
	{`BEGIN{printf "%5s|%-5s|%05.1f|%s\n", "abcdefg", "x", 2.25, 1e3}`, ""},
	{`BEGIN{print and(12,10), or(12,10), xor(12,10), lshift(1,4), rshift(16,2), compl(0)}`, ""},
	{`BEGIN{print strftime("%Y-%m-%d %H:%M:%S", 86400)}`, ""},
	{`BEGIN{print mktime("1970 01 02 00 00 00")}`, ""},
	{`NF{s=0; for(i=1;i<=NF;i++) s+=$i; print s/NF}`, "1 2 3\n\n4 5\n"},
	{`{ lines[NR]=$0 } END { for (i=NR;i>0;i--) print lines[i] }`, "a\nb\nc\n"},
	{`NR%2`, "1\n2\n3\n"},
	{`NR>1{print prev} {prev=$0}`, "1\n2\n3\n"},
	{`!seen[$0]++`, "a\nb\na\n"},
	{`$1=="MemTotal:"{print $2/1024 " MB"}`, "MemTotal:  2048 kB\n"},
	{`/a/{print "1:" $0} /b/{print "2:" $0}`, "ab\nb\n"},
	{`BEGIN { x = "A"; y = x++; print x, y }`, ""},
	{`BEGIN{print (1>2) ? "a" : "b"}`, ""},
	{`BEGIN{print length("a" "b") 5; print -"3x"; print !x + 1; print 2 * 3 "4"; print 1 - 1 " x"}`, ""},
	{`BEGIN{print "a" > "/dev/stderr"}`, ""},
	{`BEGIN{print $1; print $(1+1)}`, ""},
	{`BEGIN{regex="^a.c$"; if ("abc" ~ regex) print "m"; if ("a.c" ~ "a\\.c") print "n"; if ("a+b" ~ /a\+b/) print "o"}`, ""},
	{`BEGIN { while ("echo a; echo b" | getline l) print "l=" l; close("x"); print NR }`, ""},
	{`BEGIN { "echo hi" | getline; print; print "z\na" | "sort"; close("sort"); print "after" }`, ""},
	{`BEGIN { r = system("exit 3"); print r }`, ""},
	{`BEGIN { print ENVIRON["NOPE"] "|"; print ARGC, ARGV[0] }`, ""},
	{`BEGIN{printf "a" "b\n"; printf("%d%%\n", 50); printf "no newline"}`, ""},
	{`function a(b) { b[1]=1 } function c(d) { a(d); return d[1] } BEGIN { print c(e), e[1] }`, ""},
	{`# comment
BEGIN { # another
  x = 1; ; y = 2
  print x,
    y
  print x && \
    y
}
`, ""},
}

const recorded = "testdata/corpus.txt"

var update = flag.Bool("update", false, "record "+recorded+" anew from the machine's busybox")

// record runs the corpus in the real busybox, without what that was built
// without.
func record(t *testing.T) {
	if _, err := exec.LookPath("busybox"); err != nil {
		t.Skip("there is no busybox on this machine")
	}
	var b strings.Builder
	for _, c := range corpus {
		cmd := exec.Command("busybox", "awk", c.src)
		cmd.Stdin = strings.NewReader(c.in)
		cmd.Env = []string{"PATH=/bin:/usr/bin"}
		cmd.Dir = t.TempDir()
		out, _ := cmd.CombinedOutput()
		fmt.Fprintf(&b, "%d %q\n", cmd.ProcessState.ExitCode(), out)
	}
	if err := os.WriteFile(recorded, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCorpus(t *testing.T) {
	if *update {
		record(t)
	}
	data, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if len(want) != len(corpus) {
		t.Fatalf("%d programs, %d are recorded: run with -update", len(corpus), len(want))
	}
	for i, c := range corpus {
		h := &testHost{in: c.in}
		code := 1
		p, err := Parse(c.src)
		if err == nil {
			code, err = Run(p, Config{}, h)
		}
		if err != nil {
			code = 1
			h.out.WriteString("awk: " + err.Error() + "\n")
		}
		if got := fmt.Sprintf("%d %q", code, h.out.String()); got != want[i] {
			t.Errorf("%s\n got %s\nwant %s", c.src, got, want[i])
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range corpus {
		f.Add(c.src, c.in)
	}
	f.Fuzz(func(t *testing.T, src, in string) {
		p, err := Parse(src)
		if err != nil {
			return
		}
		if strings.Contains(src, "*") || strings.Contains(src, "%") {
			return // may ask for long texts
		}
		h := &testHost{in: in, files: map[string]string{}, limit: 3}
		defer func() {
			if r := recover(); r != nil && r != errLimit {
				panic(r)
			}
		}()
		_, _ = Run(p, Config{}, h)
	})
}
