// Command typecheck says what a compiler for other systems would refuse, without
// one: it type-checks packages and their tests, with all that they import, from
// source, as kubernetes/test/typecheck does. That takes a fraction of what
// building takes, so that each change can be tried on each target of a release.
//
//	go run ./hack/typecheck [-targets 'darwin/arm64 windows/amd64'] [packages]
//
// What only a linker or an assembler notices it doesn't see; `make cross` and
// `make release-check` build.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/packages"
)

func main() {
	targets := flag.String("targets", "linux/arm64 darwin/arm64 windows/amd64", "the systems and processors to check for")
	flag.Parse()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	sound := true
	for target := range strings.FieldsSeq(*targets) {
		start := time.Now()
		problems, err := check(".", target, patterns)
		if err != nil {
			fmt.Fprintln(os.Stderr, "typecheck:", err)
			os.Exit(2)
		}
		for _, p := range problems {
			fmt.Println(p)
		}
		sound = sound && len(problems) == 0
		fmt.Printf("%s: %d problems, %.0f s\n", target, len(problems), time.Since(start).Seconds())
	}
	if !sound {
		os.Exit(1)
	}
}

// check returns what is wrong with packages for a target such as windows/amd64, a
// line each.
func check(dir, target string, patterns []string) ([]string, error) {
	system, processor, ok := strings.Cut(target, "/")
	if !ok {
		return nil, fmt.Errorf("target %q: want a system and a processor, as in windows/amd64", target)
	}
	loaded, err := packages.Load(&packages.Config{
		Mode:  packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesSizes,
		Dir:   dir,
		Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0"),
		Tests: true,
	}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", target, err)
	}
	var problems []string
	packages.Visit(loaded, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			problems = append(problems, fmt.Sprintf("%s: %v", target, e))
		}
	})
	slices.Sort(problems)
	return slices.Compact(problems), nil
}
