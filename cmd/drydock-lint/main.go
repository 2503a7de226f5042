// Command drydock-lint judges Drydock's packages by the rules that no compiler
// knows: each by itself whether it is deterministic (package determinism), and
// the module as a whole whether its rooms are in order (package rooms).
//
//	go run ./cmd/drydock-lint ./...
//	go run ./cmd/drydock-lint -rooms=false ./kubelet/...
//	go run ./cmd/drydock-lint -list-unordered ./...
//
// The second form is for a part of the module, of which rooms can't judge. The
// third lists besides every escape that lets a line use the order of a map,
// with its reason. The exit code is 0 when nothing is wrong, 1 when something
// was found, 2 when the packages could not be loaded.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/drydock-sim/drydock/cmd/drydock-lint/determinism"
	"github.com/drydock-sim/drydock/cmd/drydock-lint/rooms"
)

func main() { os.Exit(run(os.Args[1:], ".", rooms.Drydock(), os.Stdout, os.Stderr)) }

// run is main with its surroundings as arguments; it returns the exit code.
func run(args []string, dir string, rules rooms.Rules, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("drydock-lint", flag.ContinueOnError)
	flags.SetOutput(stderr)
	list := flags.Bool("list-unordered", false, "list besides the escapes of //drydock:unordered with their reasons")
	whole := flags.Bool("rooms", true, "judge the rooms, for which the packages must be the whole module")
	flags.BoolVar(&rules.Stale, "stale", rules.Stale, "report exceptions of rooms that are needed no more")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: drydock-lint [-rooms=false] [-stale] [-list-unordered] [packages]")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return 2
	}
	patterns := flags.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	graph, sound, broken, err := analyze(dir, patterns)
	if err != nil {
		fmt.Fprintln(stderr, "drydock-lint:", err)
		return 2
	}
	abs, _ := filepath.Abs(dir) // without it, paths stay absolute
	lines, err := diagnostics(graph, abs)
	if *whole && len(broken) == 0 {
		for _, f := range rooms.Check(sound, rules) {
			lines = append(lines, f.String())
		}
	}
	for _, line := range lines {
		fmt.Fprintln(stdout, line)
	}
	if *list {
		fmt.Fprintln(stdout, "where the order of a map is used, and why that cannot be observed:")
		for _, line := range escapes(graph, abs) {
			fmt.Fprintln(stdout, line)
		}
	}
	for _, line := range broken {
		fmt.Fprintln(stderr, line)
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "drydock-lint:", err)
		return 2
	case len(broken) > 0:
		fmt.Fprintln(stderr, "drydock-lint: these packages were not judged")
		return 2
	case len(lines) > 0:
		return 1
	}
	return 0
}

// analyze loads the packages, with their tests, and runs the analyzer over
// those that compile, the sound ones; broken says, in lines, what is wrong with
// the others: they are named, since a silent gap would look like a clean result.
func analyze(dir string, patterns []string) (graph *checker.Graph, sound []*packages.Package, broken []string, err error) {
	all, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: dir, Tests: true}, patterns...)
	if err != nil {
		return nil, nil, nil, err
	}
	if len(all) == 0 {
		return nil, nil, nil, fmt.Errorf("no packages match %s", strings.Join(patterns, " "))
	}
	for _, p := range all {
		if len(p.Errors) == 0 {
			sound = append(sound, p)
			continue
		}
		for i, e := range p.Errors {
			// The go command's own account of what the type checker says
			// comes first, without a place.
			if line := e.Error(); (e.Kind != packages.ListError || len(p.Errors) == i+1) && !slices.Contains(broken, line) {
				broken = append(broken, line)
			}
		}
	}
	graph, err = checker.Analyze([]*analysis.Analyzer{determinism.Analyzer}, sound, nil)
	return graph, sound, broken, err
}

// place is a line of output and what it is sorted by.
type place struct {
	file      string
	line, col int
	text      string
}

// sorted orders the places, drops those that several variants of a package
// have in common, and formats them.
func sorted(places []place) []string {
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.col, b.col), cmp.Compare(a.text, b.text))
	})
	var out []string
	for _, p := range slices.Compact(places) {
		if p.col == 0 {
			out = append(out, fmt.Sprintf("%s:%d: %s", p.file, p.line, p.text))
			continue
		}
		out = append(out, fmt.Sprintf("%s:%d:%d: %s", p.file, p.line, p.col, p.text))
	}
	return out
}

// diagnostics returns what determinism refused, a line each, as compilers write it.
func diagnostics(graph *checker.Graph, dir string) ([]string, error) {
	var places []place
	for _, act := range graph.Roots {
		if act.Err != nil {
			return nil, fmt.Errorf("%s: %w", act.Package.PkgPath, act.Err)
		}
		for _, d := range act.Diagnostics {
			p := act.Package.Fset.Position(d.Pos)
			places = append(places, place{short(dir, p.Filename), p.Line, p.Column, d.Message})
		}
	}
	return sorted(places), nil
}

// escapes returns the escapes and their reasons, a line each.
func escapes(graph *checker.Graph, dir string) []string {
	var places []place
	for _, act := range graph.Roots {
		found, _ := act.Result.([]determinism.Escape)
		for _, e := range found {
			places = append(places, place{file: short(dir, e.File), line: e.Line, text: e.Reason})
		}
	}
	return sorted(places)
}

// short makes a path relative to dir where it lies below it.
func short(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}
