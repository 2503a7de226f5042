package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
)

// mutantPackage is what the mutants call, a package that only the overlay has.
const (
	mutantPackage = "github.com/drydock-sim/drydock/ground/drydockmutant"
	mutantFolder  = "ground/drydockmutant"
	mutantSource  = `// Package drydockmutant chooses a mutant.
package drydockmutant

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
)

var chosen, _ = strconv.Atoi(os.Getenv("` + chosenVar + `"))

var reached = func() *os.File {
	name := os.Getenv("` + reachedVar + `")
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	return f
}()

var seen [1 << 16]atomic.Bool

// On reports whether a mutant was chosen.
func On(id int) bool {
	if reached != nil && !seen[id].Swap(true) {
		fmt.Fprintln(reached, id)
	}
	return id == chosen
}

// Number is what Pick chooses from.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

// Pick returns a if the mutant was chosen, else b.
func Pick[T Number](id int, a, b T) T {
	if On(id) {
		return a
	}
	return b
}

// Quo is a quotient that may be of 0, since it is made whatever was chosen.
func Quo[T Number](a, b T) T {
	if b == 0 {
		return 0
	}
	return a / b
}
`
	// The environment's variables: which mutant is on, and where to note the ones
	// that were reached.
	chosenVar  = "DRYDOCK_MUTANT"
	reachedVar = "DRYDOCK_REACHED"
)

// overlay writes the files with mutants in them, below dir, and the list of what
// they take the place of, whose name it returns. The mutants are sorted.
func overlay(dir string, mutants []*mutant) (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	write := func(path string, src []byte) error {
		name := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		replace[filepath.Join(root, path)] = name
		return os.WriteFile(name, src, 0o600)
	}
	if err := write(mutantFolder+"/mutant.go", []byte(mutantSource)); err != nil {
		return "", err
	}
	for len(mutants) > 0 {
		path, n := mutants[0].path, 1
		for n < len(mutants) && mutants[n].path == path {
			n++
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		woven, err := weave(path, src, mutants[:n])
		if err != nil {
			return "", err
		}
		if err := write(path, woven); err != nil {
			return "", err
		}
		mutants = mutants[n:]
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, list, 0o600)
}

// weave returns a file with its mutants in it. Lines stay where they are, but after an operator
// whose operands go over several: they stand there twice.
func weave(path string, src []byte, mutants []*mutant) ([]byte, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.PackageClauseOnly)
	if err != nil {
		return nil, err
	}
	var part func(from, to int, inside []*mutant) string
	part = func(from, to int, inside []*mutant) string {
		var b bytes.Buffer
		for len(inside) > 0 {
			m := inside[0]
			if m.from < from || m.to > to {
				inside = inside[1:]
				continue
			}
			b.Write(src[from:m.from])
			rest := inside[1:]
			b.WriteString(m.weave(m.id, func(from, to int) string { return part(from, to, rest) }))
			from = m.to
			// Those within it are done.
			for len(rest) > 0 && rest[0].from < m.to {
				rest = rest[1:]
			}
			inside = rest
		}
		b.Write(src[from:to])
		return b.String()
	}
	head := int(file.Name.End()) - 1
	return []byte(string(src[:head]) + "; import drydockmutant \"" + mutantPackage + "\"" + part(head, len(src), mutants)), nil
}
