// Command loc counts the module's lines of Go: code, and comments beside it.
//
//	go run ./hack/loc          prints a table and the totals
//	go run ./hack/loc -check   also exits 1 where comments are too few
//	go run ./hack/loc DIR      counts another tree, such as an older commit's
//
// It reads tracked and untracked files alike, so that a tree without git counts
// as well. count.go says what a line counts as; this file sums and judges.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The limits that -check holds the tree to, in comment lines per code line. A
// small package is exempt: its package comment and a few doc comments decide
// the ratio, not how well it is explained.
const (
	leastOverall = 0.20
	leastPackage = 0.15
	largePackage = 500 // code lines
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with its surroundings as arguments; it returns the exit code: 1
// if a limit is broken, 2 if the tree can't be read.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("loc", flag.ContinueOnError)
	flags.SetOutput(stderr)
	check := flags.Bool("check", false, "exit 1 where there are too few comments")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	root := cmp.Or(flags.Arg(0), ".")
	packages, err := countTree(os.DirFS(root))
	if err != nil {
		fmt.Fprintln(stderr, "loc:", err)
		return 2
	}
	complaints := report(stdout, packages)
	if *check && len(complaints) > 0 {
		for _, c := range complaints {
			fmt.Fprintln(stderr, "loc:", c)
		}
		return 1
	}
	return 0
}

// countTree counts every package below root that is compiled into something a
// user gets: no tests, no testdata, nothing generated.
func countTree(root fs.FS) (map[string]lines, error) {
	packages := map[string]lines{}
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			// The go command skips these names as well. What hack holds measures
			// the tree and is no part of it.
			if name == "testdata" || path == "hack" || path != "." && strings.HasPrefix(name, ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		src, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		if n, ok := countFile(src); ok {
			dir := filepath.ToSlash(filepath.Dir(path))
			packages[dir] = packages[dir].plus(n)
		}
		return nil
	})
	return packages, err
}

// report prints a line for each package, the poorest in comments first so that
// the next one to explain is on top, and returns what breaks a limit.
func report(w io.Writer, packages map[string]lines) (complaints []string) {
	dirs := slices.SortedFunc(maps.Keys(packages), func(a, b string) int {
		return cmp.Or(cmp.Compare(packages[a].ratio(), packages[b].ratio()), cmp.Compare(a, b))
	})
	var total lines
	fmt.Fprintf(w, "%7s %8s %6s %5s  package\n", "code", "comments", "ratio", "files")
	for _, dir := range dirs {
		n := packages[dir]
		total = total.plus(n)
		mark := ""
		if n.code > largePackage && n.ratio() < leastPackage {
			mark = fmt.Sprintf("  below %.2f", leastPackage)
			complaints = append(complaints, fmt.Sprintf("%s has %.3f comment lines per code line, at least %.2f are wanted", dir, n.ratio(), leastPackage))
		}
		fmt.Fprintf(w, "%7d %8d %6.3f %5d  %s%s\n", n.code, n.comments, n.ratio(), n.files, dir, mark)
	}
	fmt.Fprintf(w, "%7d %8d %6.3f %5d  all\n", total.code, total.comments, total.ratio(), total.files)
	if total.ratio() < leastOverall {
		complaints = append(complaints, fmt.Sprintf("the whole has %.3f comment lines per code line, at least %.2f are wanted", total.ratio(), leastOverall))
	}
	return complaints
}
