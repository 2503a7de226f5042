package drydocktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Runs that are compared, or tried with other faults, are processes of their own: client
// libraries keep state of the process (names of controllers, registries of metrics), and a
// controller that panics ends it.

// childVar tells a process of the test binary which run it is to be.
const childVar = "DRYDOCKTEST_CHILD"

// repeatVar has Explore run one plan instead of drawing some, in the test's own process.
const repeatVar = "DRYDOCK_EXPLORE"

// order is what a child is told.
type order struct {
	Test string `json:"test"`
	Plan *Plan  `json:"plan,omitempty"`
	Log  string `json:"log,omitempty"` // the file that takes its requests
}

// orderOf returns what this process is told to run in a test; nil: nothing.
func orderOf(t *testing.T) *order {
	t.Helper()
	text := os.Getenv(childVar)
	if text == "" {
		return nil
	}
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("drydocktest: %s: %v", childVar, err)
	}
	if o.Test != t.Name() {
		t.Skipf("drydocktest: this process runs %s only", o.Test)
	}
	return &o
}

// run runs a test in a process of its own, as ordered, and returns what it printed. The
// error says that the test failed.
func (o *order) run(ctx context.Context) (string, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	args := append([]string{"-test.run=" + pattern(o.Test), "-test.count=1", "-test.v"}, ownFlags(os.Args[1:])...)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), childVar+"="+string(data), "GOMAXPROCS=1")
	out, err := cmd.CombinedOutput()
	if err == nil && !strings.Contains(string(out), "--- PASS: "+o.Test) {
		err = errors.New("the test was not run")
	}
	return string(out), err
}

// ownFlags are the flags of the test binary that are not package testing's.
func ownFlags(args []string) (out []string) {
	for i := 0; i < len(args); i++ {
		switch name, _, whole := strings.Cut(strings.TrimLeft(args[i], "-"), "="); {
		case !strings.HasPrefix(name, "test."):
			out = append(out, args[i])
		case !whole && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			i++ // its value
		}
	}
	return out
}

// pattern selects one test, by its whole name.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i := range parts {
		parts[i] = "^" + regexp.QuoteMeta(parts[i]) + "$"
	}
	return strings.Join(parts, "/")
}

// inParallel calls fn for 0 to n-1, on as many goroutines as there are cores, until one
// returns false.
func inParallel(n int, fn func(i int) bool) {
	var mu sync.Mutex
	next, stopped := 0, false
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				over := stopped || i >= n
				mu.Unlock()
				if over {
					return
				}
				if !fn(i) {
					mu.Lock()
					stopped = true
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
}

// Verify runs a test n times, each in a process of its own, and fails it unless the same
// requests came at the same times, and the same came of them. It shows the first request
// that differs.
func Verify(t *testing.T, n int, o Options, body func(t *testing.T, c *Cluster)) {
	t.Helper()
	if ordered := orderOf(t); ordered != nil {
		o.keepLog = true
		Run(t, o, func(t *testing.T, c *Cluster) {
			t.Cleanup(func() { c.writeLog(t, ordered.Log) })
			body(t, c)
		})
		return
	}
	dir, logs, outputs := t.TempDir(), make([][]string, n), make([]string, n)
	inParallel(n, func(i int) bool {
		file := filepath.Join(dir, fmt.Sprint(i))
		out, err := (&order{Test: t.Name(), Log: file}).run(context.Background())
		if err != nil {
			outputs[i] = fmt.Sprintf("%v\n%s", err, out)
			return false
		}
		data, err := os.ReadFile(file)
		if err != nil {
			outputs[i] = err.Error()
		}
		logs[i] = strings.Split(string(data), "\n")
		return err == nil
	})
	for i, out := range outputs {
		if out != "" {
			t.Fatalf("drydocktest: run %d of %d failed: %s", i+1, n, out)
		}
	}
	for i := 1; i < n; i++ {
		if at := firstDifference(logs[0], logs[i]); at >= 0 {
			t.Fatalf("drydocktest: run %d is not the first one again. The first difference is\n\t%s\n\twhere it was\n\t%s\n\tafter\n\t%s",
				i+1, lineOf(logs[i], at), lineOf(logs[0], at), strings.Join(logs[0][max(0, at-3):at], "\n\t"))
		}
	}
}

// writeLog writes what was asked for, and the hash of what came of it.
func (c *Cluster) writeLog(t *testing.T, file string) {
	var lines []string
	if err := c.between(func() {
		lines = append(c.door.log.lines, fmt.Sprintf("trace hash %016x", c.session.Cluster().Hash()))
	}); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Error(err)
	}
}

// firstDifference is where two lists first differ; -1: nowhere.
func firstDifference(a, b []string) int {
	for i := range max(len(a), len(b)) {
		if lineOf(a, i) != lineOf(b, i) {
			return i
		}
	}
	return -1
}

func lineOf(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "(nothing more)"
}
