package busybox_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "record testdata/corpus.txt anew from the machine's busybox")

// setup makes the files that every script of the corpus finds.
const setup = `mkdir -p /tmp/w; cd /tmp/w || exit 9; printf 'b 2\na 1\nc 3\n' > f; printf x > g; printf 'one\ttwo\tthree\n1:2:3\n\nlast' > t; mkdir d d/e; echo deep > d/e/x; ln -s f l; ln -s nowhere bad; chmod 640 g; chmod 755 d d/e; touch -d '2020-01-02 03:04:05' f g t d/e/x d/e d; `

// transcript runs the corpus and writes it down: "$ script", what it printed,
// and "[status]".
func transcript(scripts []string, run func(script string) (string, int)) string {
	var b strings.Builder
	for _, s := range scripts {
		out, code := run(setup + s)
		if out != "" && !strings.HasSuffix(out, "\n") {
			out += "%\n"
		}
		fmt.Fprintf(&b, "$ %s\n%s[%d]\n", s, out, code)
	}
	return b.String()
}

func realBusybox(t *testing.T) func(string) (string, int) {
	if _, err := exec.LookPath("busybox"); err != nil {
		t.Skip("there is no busybox on this machine")
	}
	return func(script string) (string, int) {
		_ = os.RemoveAll("/tmp/w")
		cmd := exec.Command("busybox", "sh", "-c", script)
		cmd.Env = []string{"PATH=/bin"}
		cmd.Dir = "/"
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run()
		_ = os.RemoveAll("/tmp/w")
		return withoutUsage(out.String(), func(applet string) string {
			help, _ := exec.Command("busybox", applet, "--help").CombinedOutput()
			return string(help)
		}), cmd.ProcessState.ExitCode()
	}
}

// withoutUsage puts "<usage>" in the place of usage texts: they are not compared.
func withoutUsage(out string, help func(applet string) string) string {
	for {
		i := strings.Index(out, "BusyBox v1.35.0 ")
		if i < 0 {
			return out
		}
		_, rest, _ := strings.Cut(out[i:], "Usage: ")
		applet, _, _ := strings.Cut(rest, " ")
		applet, _, _ = strings.Cut(applet, "\n")
		text := help(applet)
		if text == "" || !strings.HasPrefix(out[i:], text) {
			text = out[i:]
		}
		out = out[:i] + "<usage>\n" + out[i+len(text):]
	}
}

const recorded = "testdata/corpus.txt"

func scripts(t *testing.T) []string {
	data, err := os.ReadFile("testdata/scripts.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, line := range strings.Split(string(data), "\n") {
		if line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out
}

// ourUsage finds our own usage texts, which are of three lines.
func ourUsage(out string) func(string) string {
	return func(string) string {
		i := strings.Index(out, "BusyBox v1.35.0 ")
		text := strings.Join(strings.SplitAfterN(out[i:], "\n", 4)[:3], "")
		out = out[i+len(text):]
		return text
	}
}

// TestCorpus runs scripts and compares with what the real busybox printed.
func TestCorpus(t *testing.T) {
	list := scripts(t)
	if *update {
		if err := os.WriteFile(recorded, []byte(transcript(list, realBusybox(t))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	got := transcript(list, func(script string) (string, int) {
		out, code := sh(t, script)
		return withoutUsage(out, ourUsage(out)), code
	})
	compareTranscripts(t, got, string(want))
}

func compareTranscripts(t *testing.T, got, want string) {
	t.Helper()
	a, b := strings.Split("\n"+got, "\n$ "), strings.Split("\n"+want, "\n$ ")
	if len(a) != len(b) {
		t.Errorf("%d scripts ran, %d are recorded: run with -update", len(a), len(b))
	}
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Errorf("got\n$ %s\nwant\n$ %s", a[i], b[i])
		}
	}
}
