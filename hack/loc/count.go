package main

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"strings"
)

// lines is what files amount to. A line of code with a comment behind it counts
// as code alone, so that the two never add up to more than the lines there are.
type lines struct {
	code, comments, files int
}

func (n lines) plus(m lines) lines {
	return lines{n.code + m.code, n.comments + m.comments, n.files + m.files}
}

// ratio is comment lines per code line; 0 without code.
func (n lines) ratio() float64 {
	if n.code == 0 {
		return 0
	}
	return float64(n.comments) / float64(n.code)
}

// countFile counts one Go file; ok is false for a generated one. It scans
// tokens rather than lines, because only a token says whether "//" stands in a
// string, and how many lines a raw string covers.
func countFile(src []byte) (n lines, ok bool) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, "", src, parser.ParseComments|parser.PackageClauseOnly)
	if err == nil && ast.IsGenerated(parsed) {
		return lines{}, false
	}
	file := fset.AddFile("", -1, len(src))
	code, comments := map[int]bool{}, map[int]bool{}
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue // the scanner's own
		}
		first := file.Line(pos)
		if tok != token.COMMENT {
			for i := range strings.Count(text, "\n") + 1 {
				code[first+i] = true
			}
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			if explains(line) {
				comments[first+i] = true
			}
		}
	}
	n = lines{code: len(code), files: 1}
	for line := range comments { // only counted, so their order doesn't matter
		if !code[line] {
			n.comments++
		}
	}
	return n, true
}

// explains reports whether a line of a comment has words for a reader: an empty
// one has none, and a directive speaks to a tool.
func explains(line string) bool {
	if rest, ok := strings.CutPrefix(line, "//"); ok {
		tool, _, directive := strings.Cut(rest, ":")
		if directive && tool != "" && strings.Trim(tool, "abcdefghijklmnopqrstuvwxyz") == "" || strings.HasPrefix(rest, "nolint") {
			return false
		}
	}
	return strings.Trim(line, "/* \t") != ""
}
