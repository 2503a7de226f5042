package sed

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

type testHost struct {
	lines []string
	out   bytes.Buffer
	files map[string]*bytes.Buffer
	steps int
}

func newHost(in string) *testHost {
	return &testHost{lines: strings.SplitAfter(in, "\n"), files: map[string]*bytes.Buffer{}}
}

func (h *testHost) Next() (string, bool, bool, error) {
	if h.Last() {
		return "", false, false, nil
	}
	line := h.lines[0]
	h.lines = h.lines[1:]
	text, newline := strings.CutSuffix(line, "\n")
	return text, newline, true, nil
}

func (h *testHost) Last() bool        { return len(h.lines) == 0 || h.lines[0] == "" }
func (h *testHost) Stdout() io.Writer { return &h.out }
func (h *testHost) ReadFile(name string) ([]byte, error) {
	if name == "abc" {
		return []byte("from abc"), nil
	}
	return nil, os.ErrNotExist
}

func (h *testHost) WriteFile(name string) (io.Writer, error) {
	h.files[name] = &bytes.Buffer{}
	return h.files[name], nil
}

var errLimit = errors.New("too long")

func (h *testHost) Step() {
	if h.steps++; h.steps > 20 {
		panic(errLimit)
	}
}

const digits = "1\n2\n3\n4\n5\n"

// corpus are scripts with their options and input.
var corpus = []struct{ options, script, in string }{
	{"", "s/a", digits}, {"", "k", digits}, {"", "{p", digits}, {"", "p}", digits}, {"", "s/a/b/w", digits},
	{"n", "$=", digits}, {"", "3q", digits}, {"", "3q7", digits}, {"", "y/123/abc/", digits}, {"", `s/\(/x/`, digits},
	{"", "bfoo", digits}, {"", "2,1p", digits}, {"", "2~2d", digits}, {"", "s/[0-9]/<&>/;2!d", digits},
	{"", "$!N;s/\\n/,/", digits}, {"", "i\\\nfoo", digits}, {"", "2i foo", digits}, {"", `2a\  foo`, digits},
	{"", "2c foo", digits}, {"", "2,3c foo", digits}, {"", "$d", "no newline"}, {"", "p", "no newline"},
	{"", "3,+1d", digits}, {"", "w", digits}, {"n", "/2/,/4/{/3/!p}", digits}, {"", `s/2/a\nb/`, digits},
	{"", `s/\(.\)\(.\)/\2\1/`, "abcd\n"}, {"E", `s/(a)(b)?/[\1|\2]/g`, "abaab\n"}, {"", "s/o/0/2g", "ooo\n"}, {"", "s/o/0/2", "ooo\n"},
	{"", "N;N;P;D", digits}, {"", "G", digits}, {"n", "1!G;h;$p", digits}, {"n", "2{p;q}", digits}, {"", "2Q", digits},
	{"", "1{\na foo\n}", digits}, {"", "=", "no newline"}, {"", `:a;s/^\(.\{1,5\}\)$/0\1/;ta`, digits}, {"", `s,1,/,;s|2|\||`, digits},
	{"", "a", digits}, {"", "3{s/3/x/;n;d}", digits}, {"", "s/x*/-/g", "abc\n"}, {"", "s/b*/x/2", "abc\n"}, {"", "s/a*/x/g", "baaac\n"},
	{"", "$!d", digits}, {"n", "$p", digits}, {"n", "2,4p", digits}, {"n", "/3/,$p", digits}, {"n", `\|3|p`, digits},
	{"", "/2/d;/4/!s/$/!/", digits}, {"", "s/^/> /", digits}, {"", "s/[/]/x/", "a/b\n"}, {"", "s/[]/]/x/g", "a/]b\n"},
	{"", `s/\//x/g`, "a/b/c\n"}, {"", `s/a\|b/x/g`, "a|b\n"}, {"", `s|a\|b|x|g`, "a|b\n"}, {"", "s/.*/\"&\"/", "a b\n"}, {"", `s/.*/\&/`, "a b\n"},
	{"", "s/A/x/I", "a\n"}, {"", "s/a/x/gp", "aa\n"}, {"n", "s/a/x/gp", "aa\nb\n"}, {"n", "l", "a\tb\\\x01\n"}, {"", "x;p;x", "a\nb\n"},
	{"", "H;$!d;x;s/\\n/,/g", digits}, {"", "/^$/d", "a\n\nb\n"}, {"", "s/[[:space:]]*$//", "a  \t\n"}, {"E", "s/^ +| +$//g", "  a b  \n"},
	{"", `s/\([a-z]*\).*/\1/`, "abc 123\n"}, {"", "s/=.*//;s/ //g", "a b = c\n"}, {"", "1d;s/x/y/;t;s/$/ no/", "x\nx\nz\n"},
	{"", "/a/,/b/d", "1\na\n2\nb\n3\na\n4\n"}, {"", "2,/3/d", digits}, {"", "0,/1/d", digits}, {"", "#comment\np # more", "a\n"}, {"", "#n\np", "a\n"},
	{"", "$s/5/x/;1s/1/y/", digits}, {"", "s/1/a/;b;s/2/b/", digits}, {"", "/3/{N;d}", digits}, {"", "y/abc/\\n\\tx/", "abc\n"}, {"", "y/ab/x/", "abc\n"},
	{"", `1i\  two`, "a\n"}, {"", "1i\\\n  two\\\nthree", "a\n"}, {"", "a\\\n", "a\n"}, {"", "1,2{=;p}", digits}, {"", "2{h;d};${G}", digits}, {"", "n;n;s/./x/", digits},
	{"", `s/\(foo\|bar\)baz/[\1]/`, "barbaz\n"}, {"E", `s/(^|,)x/\1y/g`, "x,x,ax\n"}, {"", "s/a/b/;;;s/b/c/;", "a\n"}, {"", "s/a/x/q", "a\n"}, {"", "1,p", digits}, {"", "/a", digits},
	{"", `s/\t/TAB/`, "a\tb\n"}, {"", `s/a/\t/`, "a\n"}, {"", `s/$/\r/`, "a\n"}, {"", `s/\bfoo\b/x/`, "a foo b\n"}, {"", "s/\\w\\+/W/g", "a foo b\n"}, {"", `s/\(.\)\1/<\1>/g`, "aabbc\n"},
	{"", "s//x/", "a\n"}, {"", "/b/s//x/g", "abb\n"}, {"", "3r abc", digits}, {"", "$r abc", digits}, {"", "d;p", "a\n"}, {"", "N", "a\n"}, {"", "N;p", "a\nb\nc\n"}, {"n", "N;p", "a\nb\nc\n"}, {"", "s/a/1\\\n2/", "a\n"},
	{"", "}", "a\n"}, {"", "{{p};p}", "a\n"}, {"", ":a;N;$!ba;s/\\n/ /g", digits}, {"", "s/[^,]*,//2", "a,b,c,d\n"}, {"E", "s/([0-9]+)-([0-9]+)/\\2-\\1/", "12-34\n"}, {"", "$!{h;d};H;x", digits},
	{"", "2,3!d", digits}, {"", "2 ! d", digits}, {"", "2,3 s/./x/", digits}, {"", "p;p", "a\nb"}, {"", "a foo", "a"}, {"", "i foo", "a"}, {"", "c foo", "a"}, {"", "2!c foo", digits}, {"", "$c foo", digits}, {"", "3,9c foo", digits},
	{"", "3r abc", "1\n2\n3"}, {"", "1r abc", "1\n2"}, {"", `s.a\.b.x.`, "a.b\nacb\n"}, {"", `s(a\(b(x(`, "a(b\n"}, {"", `s1a\1b1x1`, "a1b\n"}, {"", "s&a&x\\&y&", "a\n"}, {"", "l;=", "a"}, {"", "s,a,x\\,y,", "a\n"},
	{"", "s/", "a\n"}, {"", "s", "a\n"}, {"", "y/a/", "a\n"}, {"", "3", "a\n"}, {"", "s/a/b/c", "a\n"}, {"", "pp", "a\n"}, {"", "1!", "a\n"}, {"", "b x;p;:x", "a\n"}, {"", "dp", "a\n"}, {"", "r", "a\n"},
}

func runSed(options, script, in string) (string, int) {
	h := newHost(in)
	s, err := Parse([]string{script}, strings.Contains(options, "E"), strings.Contains(options, "n"))
	if err != nil {
		return "sed: " + err.Error() + "\n", 1
	}
	code, err := Run(s, h)
	if err != nil {
		return h.out.String() + "sed: " + err.Error() + "\n", 1
	}
	return h.out.String(), code
}

const recorded = "testdata/corpus.txt"

var update = flag.Bool("update", false, "record "+recorded+" anew from the machine's busybox")

// record runs the corpus in the real busybox and writes down, line by line, its
// status and what it printed.
func record(t *testing.T) {
	if _, err := exec.LookPath("busybox"); err != nil {
		t.Skip("there is no busybox on this machine")
	}
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/abc", []byte("from abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, c := range corpus {
		args := []string{"sed"}
		if c.options != "" {
			args = append(args, "-"+c.options)
		}
		cmd := exec.Command("busybox", append(args, c.script)...)
		cmd.Dir = dir
		cmd.Stdin = strings.NewReader(c.in)
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
		t.Fatalf("%d scripts, %d are recorded: run with -update", len(corpus), len(want))
	}
	for i, c := range corpus {
		out, code := runSed(c.options, c.script, c.in)
		if got := fmt.Sprintf("%d %q", code, out); got != want[i] {
			t.Errorf("sed -%s %q < %q\n got %s\nwant %s", c.options, c.script, c.in, got, want[i])
		}
	}
}

func FuzzSed(f *testing.F) {
	for _, c := range corpus {
		f.Add(c.script, c.in, c.options == "E")
	}
	f.Fuzz(func(t *testing.T, script, in string, extended bool) {
		s, err := Parse([]string{script}, extended, false)
		if err != nil || len(in) > 1000 {
			return
		}
		defer func() {
			if r := recover(); r != nil && r != errLimit {
				panic(r)
			}
		}()
		_, _ = Run(s, newHost(in))
	})
}
