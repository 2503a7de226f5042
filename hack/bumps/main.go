// Command bumps holds elision to the promise that a change of which nobody tells
// is found: it removes each call that has a version grow, one at a time, builds
// drydock without it, and runs scenarios that check elision. If these miss nothing,
// the tests of the call's package are run, and of the package that it is an internal
// part of.
//
//	go run ./hack/bumps [DIR...]
//
// It prints a line for each call: who found that it is missing, or that nobody
// did, which is an error. The tree is not touched. DIR leaves it at the calls of
// files whose path begins with one.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// tellers are methods that have a version grow, or parked bodies wake, besides
// loop.Version.Grow itself: by the folder of their callers.
var tellers = map[string][]string{
	"fakecri/internal/calls":      {"changed"},
	"fakecri/internal/podnet":     {"Tell", "AnswersChanged"},
	"fakecri/internal/records":    {"Tell"},
	"kubelet":                     {"OnChange"},
	"kubelet/internal/podworkers": {"grow"},
	"kubelet/internal/status":     {"changed", "onChange"},
	"kubelet/prober":              {"OnStatusChange", "OnAnswerChange"},
}

// scenarios are run for each call, below scenarios/library.
var scenarios = []string{
	"cgroups/pods", "cri/daemon-down", "cri/hangs", "eviction/disk", "eviction/pressure-transition",
	"images/pull-backoff", "kubelet/pod-deleted-while-down", "managers/cpu-restart", "managers/cpu-whole-cores", "node/reboot", "node/shaken-node",
	"probes/kubelet-restart", "probes/readiness-follows-port", "probes/startup-holds-back", "resize/in-place", "resize/memory-below-usage",
	"restart/crash-loop-backoff", "shutdown/cancelled", "sidecars/restarts", "static/pod-and-mirror",
	"termination/graceful", "upstream/107733-static-pod-edited-rapidly", "volumes/update-reaches-the-pod",
}

// call is a call that tells of a change.
type call struct {
	path, text string
	line       int
	from, to   int    // its bytes in the file
	instead    string // what takes its place, and evaluates the same
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bumps:", err)
		os.Exit(1)
	}
}

func run(prefixes []string) error {
	calls, err := find()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bumps")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	missed := 0
	for _, c := range calls {
		if len(prefixes) > 0 && !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(c.path, p) }) {
			continue
		}
		out, err := c.without(dir)
		if err != nil {
			return err
		}
		if out == "" {
			missed++
			out = "NOT CAUGHT"
		}
		fmt.Printf("%s:%d\t%s\t%s\n", c.path, c.line, c.text, out)
	}
	if missed > 0 {
		return fmt.Errorf("%d calls are missed by nobody", missed)
	}
	return nil
}

// find returns the calls of the module that tell of a change, tests aside.
func find() (calls []call, err error) {
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "ground/loop/") || strings.HasPrefix(path, "hack/") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, path, src, 0)
		if err != nil {
			return err
		}
		names := append([]string{"Grow"}, tellers[filepath.Dir(path)]...)
		ast.Inspect(parsed, func(n ast.Node) bool {
			e, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			s, ok := e.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(names, s.Sel.Name) || s.Sel.Name == "Grow" && len(e.Args) > 0 {
				return true
			}
			at := func(p token.Pos) int { return files.Position(p).Offset }
			c := call{path: path, line: files.Position(e.Pos()).Line, from: at(e.Pos()), to: at(e.End())}
			c.text = string(src[c.from:c.to])
			// The receiver stays, lest a variable be unused.
			c.instead = "func(...any) {}(" + string(src[at(s.X.Pos()):at(s.X.End())]) + ", " + string(src[at(e.Lparen)+1:at(e.Rparen)]) + ")"
			calls = append(calls, c)
			return true
		})
		return nil
	})
	return calls, err
}

// found are the complaints of a check of elision that tell who found something.
var found = regexp.MustCompile(`loop \S+: (.*?) was left out(?:, but what version "([^"]+)"| until \d+, has something to do)|changed what version "([^"]+)" stands for`)

// without builds drydock without the call and returns who misses it in which
// scenarios; "": nobody.
func (c call) without(dir string) (string, error) {
	src, err := os.ReadFile(c.path)
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(c.path)
	if err != nil {
		return "", err
	}
	changed, overlay, drydock := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "drydock")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	for name, data := range map[string][]byte{changed: slices.Concat(src[:c.from], []byte(c.instead), src[c.to:]), overlay: list} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return "", err
		}
	}
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-overlay", overlay, "-o", drydock, "./cmd/drydock").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s:%d: %w\n%s", c.path, c.line, err, out)
	}
	by := map[string]int{}
	for _, s := range scenarios {
		out, err := exec.Command(drydock, "run", "--check-elision=steps", filepath.Join("scenarios", "library", s+".yaml")).CombinedOutput()
		if err == nil {
			continue
		}
		who := "an expectation"
		switch m := found.FindSubmatch(out); {
		case m == nil:
		case len(m[2])+len(m[3]) > 0:
			who = fmt.Sprintf("%q", slices.Concat(m[2], m[3]))
		default:
			who = string(m[1])
		}
		by[who]++
	}
	if len(by) == 0 {
		by = failingTests(overlay, c.path)
	}
	var names []string
	for _, who := range slices.Sorted(maps.Keys(by)) {
		names = append(names, fmt.Sprintf("%s (%d)", who, by[who]))
	}
	return strings.Join(names, ", "), nil
}

// failingTests returns the tests that fail with the overlay: of the file's package,
// and of the one whose internal part it is.
func failingTests(overlay, path string) map[string]int {
	pkgs := []string{"./" + filepath.Dir(path)}
	if door, _, internal := strings.Cut(path, "/internal/"); internal {
		pkgs = append(pkgs, "./"+door)
	}
	by := map[string]int{}
	out, err := exec.Command("go", slices.Concat([]string{"test", "-overlay", overlay, "-count=1"}, pkgs)...).CombinedOutput()
	if err == nil {
		return by
	}
	for _, m := range regexp.MustCompile(`(?m)^--- FAIL: (\S+)`).FindAllSubmatch(out, -1) {
		by[string(m[1])]++
	}
	return by
}
