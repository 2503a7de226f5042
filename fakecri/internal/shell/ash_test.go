package shell

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var compare = flag.Bool("ash", false, "compare testdata/ash.txt with what the machine's busybox does")

var update = flag.Bool("update", false, "record testdata/ash.txt anew with the machine's busybox")

// corpus reads the scripts of testdata/corpus.txt.
func corpus(tb testing.TB) []string {
	data, err := os.ReadFile("testdata/corpus.txt")
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n---\n")
}

// answer is what a script did, as testdata/ash.txt has it.
func answer(stdout, stderr string, code int) string {
	return fmt.Sprintf("out %s\nerr %s\nexit %d\n", strconv.Quote(stdout), strconv.Quote(stderr), code)
}

// recorded reads testdata/ash.txt: what BusyBox v1.35.0 made of each script.
func recorded(tb testing.TB) map[string]string {
	data, err := os.ReadFile("testdata/ash.txt")
	if err != nil {
		tb.Fatal(err)
	}
	m := map[string]string{}
	for block := range strings.SplitSeq(strings.TrimSuffix(string(data), "\n"), "\n\n") {
		head, rest, _ := strings.Cut(block, "\n")
		script, err := strconv.Unquote(strings.TrimPrefix(head, "sh "))
		if err != nil {
			tb.Fatalf("testdata/ash.txt: %q: %v", head, err)
		}
		m[script] = rest + "\n"
	}
	return m
}

// known are scripts whose outcome differs from ash's, and why.
var known = map[string]string{
	"for i in 1 2; do echo $i; fi": "the parser does not say what it expected",
	"case a in a) echo x":          "the parser does not say what it expected",
	"()":                           "the parser complains of the end first",
	"echo $(( (1+2)*3 )) $((1+2*3)) $((10-2-3)) $((2*3%4)) $((1?2?3:4:5))": "ash has no ?: within ?:",
	"echo $((unset_var + 1)) $(()) $(( ))":                                 "the parser wants something in $(())",
	"alias ll=\"echo LL\"\nll a b\nunalias ll; ll; unalias nope; echo $?":  "aliases are looked up when a command runs",
	"x=$(echo a; echo b); echo \"$x\"; echo $x; echo $(echo \"a  b\") \"$(echo \"a  b\")\"; echo `echo a\\`echo b\\``; echo `echo \\$HOME` \"`echo \"q\"`\"; x=$(printf 'a\\n\\n\\n'); echo \"[$x]\"; echo $( ) $(:) end": "the parser splits a back quote within a back quote off",
	"cat <<EOF\nno end": "an unfinished last line gets its newline",
	"[[ a == a && b == b ]] && echo yes; [[ abc == a* ]] && echo glob; [[ abc == \"a*\" ]] || echo quoted; [[ abc =~ ^a.c$ ]] && echo re; x=\"a b\"; [[ $x == \"a b\" ]] && echo nosplit; [[ -z $nope ]] && echo z; [[ ! -e nofile ]] && echo n; [[ 1 -lt 2 || x == y ]] && echo or": "in [[ words are not split, unlike this build of ash",
	"pwd >/dev/null; cd /; pwd; cd tmp; pwd; cd ..; pwd; cd /tmp/../tmp/.; pwd; cd -; echo $OLDPWD $PWD; cd; pwd; cd /tmp/; pwd; cd //; pwd":                                                                                                                                         "// is not kept",
	"help >/dev/null; echo $?; history >/dev/null; echo $?; ulimit -n 10; ulimit -n; ulimit -f; ulimit -c 0; ulimit -c; ulimit -Z; echo $?":                                                                                                                                          "getopt(3) words it otherwise",
	"echo \"$(( 1 + \"":          "the parser sees the quote first",
	"for i in a b; { echo $i; }": "the parser does not say what it expected",
	"function f; { echo a; }":    "function is an ordinary word unless a function follows",
}

func TestLikeAsh(t *testing.T) {
	want := recorded(t)
	for i, script := range corpus(t) {
		r := runScript(t, script)
		w, ok := want[script]
		if !ok {
			t.Errorf("script %d (%q) is not in testdata/ash.txt: run with -update where there is a busybox", i, script)
			continue
		}
		got := answer(r.stdout, r.stderr, r.code)
		switch why := known[script]; {
		case r.hung:
			t.Errorf("script %d: %s\ndoes not end", i, script)
		case got != w && why == "":
			t.Errorf("script %d: %s\ngot  %swant %s", i, script, got, w)
		case got == w && why != "":
			t.Errorf("script %d: %s\nis like ash now", i, script)
		}
	}
}

// TestAshItself holds the recorded answers against the machine's busybox.
func TestAshItself(t *testing.T) {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("no busybox here")
	}
	version, _ := exec.Command(busybox).Output()
	if !bytes.HasPrefix(version, []byte("BusyBox v1.35.")) {
		t.Skip("another busybox than the recorded one")
	}
	if !*update && !*compare {
		t.Skip("it takes real seconds: -ash compares, -update records")
	}
	want := recorded(t)
	var b strings.Builder
	seen := map[string]bool{}
	for _, script := range corpus(t) {
		if seen[script] {
			continue
		}
		seen[script] = true
		dir, err := os.MkdirTemp("/tmp", "ash")
		if err != nil {
			t.Fatal(err)
		}
		bin := filepath.Join(dir, ".bin")
		_ = os.Mkdir(bin, 0o755)
		for _, a := range []string{"sh", "sleep", "cat", "env", "touch", "rm", "mkdir", "chmod"} {
			_ = os.Symlink(busybox, filepath.Join(bin, a))
		}
		work := filepath.Join(dir, "w")
		_ = os.Mkdir(work, 0o755)
		cmd := exec.Command(busybox)
		cmd.Args = []string{"sh", "-c", script}
		cmd.Dir = work
		cmd.Env = []string{"PATH=/bin", "HOME=/root"}
		var so, se bytes.Buffer
		cmd.Stdout, cmd.Stderr = &so, &se
		timer := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		code := 0
		if err := cmd.Run(); err != nil {
			var ee *exec.ExitError
			if !errors.As(err, &ee) {
				t.Fatal(err)
			}
			code = ee.ExitCode()
			if ws, ok := ee.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
				code = 128 + int(ws.Signal())
			}
		}
		timer.Stop()
		_ = os.RemoveAll(dir)
		out := strings.ReplaceAll(so.String(), work, "/tmp") // where the tests' scripts begin
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		a := answer(out, strings.ReplaceAll(se.String(), work, "/tmp"), code)
		fmt.Fprintf(&b, "sh %s\n%s", strconv.Quote(script), a)
		if !*update && a != want[script] {
			t.Errorf("%s\nis %swas %s", script, a, want[script])
		}
	}
	if !*update {
		return
	}
	if err := os.WriteFile("testdata/ash.txt", []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
