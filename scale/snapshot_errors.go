package scale

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/drydock-sim/drydock/scenarios"
)

// placed is an error with the way to where it is: keys and indices. The way is
// looked up in the document only when there is something to tell: files of real
// clusters have hundreds of megabytes. Errors are wrapped from the inside out: each level of a
// list adds its part, and mistake puts them together.
type placed struct {
	at  []string
	err error
}

// Error implements error.
func (e *placed) Error() string { return e.err.Error() }

// Unwrap returns the error without its place.
func (e *placed) Unwrap() error { return e.err }

// document is one of a file's documents.
type document struct {
	text []byte
	line int // that it begins in, from 1
}

// documents divides a YAML stream. The YAML library can decode a stream as well, but then
// positions and the texts of documents are lost.
func documents(data []byte) (out []document) {
	doc, line, begin := document{line: 1}, 0, 0
	for at := 0; at < len(data); {
		line++
		end := len(data)
		if n := bytes.IndexByte(data[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		// What follows on a separator's line belongs to the document that it begins.
		if rest, ok := bytes.CutPrefix(data[at:end], []byte("---")); ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0) {
			doc.text = data[begin:at]
			out = append(out, doc)
			doc, begin = document{line: line}, at+3
		}
		at = end
	}
	doc.text = data[begin:]
	return append(out, doc)
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// mistake is what is wrong with a document of a file, and where. The message loses the library's
// own line, which counts from the document's beginning.
func (d *document) mistake(file string, err error) *scenarios.LoadError {
	e := fileError(file, d.line, "%v", err)
	var p *placed
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		// The offset of a syntax error is that after the offending byte.
		before := d.text[:min(max(int(syntax.Offset)-1, 0), len(d.text))]
		e.Pos.Line += bytes.Count(before, []byte("\n"))
		e.Pos.Column = len(before) - bytes.LastIndexByte(before, '\n')
	case errors.As(err, &p):
		var path []string
		for ; errors.As(err, &p); err = p.err {
			path = append(path, p.at...)
		}
		d.find(&e.Pos, path)
	default:
		if m := yamlLine.FindStringSubmatch(e.Message); m != nil {
			n, _ := strconv.Atoi(m[1]) // digits
			e.Pos.Line += n - 1
			e.Message = strings.Replace(e.Message, m[0], "", 1)
			break
		}
		d.find(&e.Pos, nil)
	}
	return e
}

// find brings a position to what a path leads to, or as far as it goes: of a list's
// items the decoder of JSON doesn't tell which one it was. The YAML parser reads JSON too, and
// knows lines.
func (d *document) find(pos *scenarios.Position, path []string) {
	var root yaml.Node
	if yaml.Unmarshal(d.text, &root) != nil || len(root.Content) == 0 {
		return
	}
	n := root.Content[0]
	for _, key := range path {
		var next *yaml.Node
		switch i, err := strconv.Atoi(key); {
		case n.Kind == yaml.SequenceNode && err == nil && i < len(n.Content):
			next = n.Content[i]
		case n.Kind == yaml.MappingNode:
			for k := 0; k+1 < len(n.Content); k += 2 {
				if n.Content[k].Value == key {
					next = n.Content[k+1]
				}
			}
		}
		if next == nil {
			break
		}
		n = next
	}
	pos.Line, pos.Column = d.line+n.Line-1, n.Column
}

// inItem is an error in a list's item.
func inItem(i int, err error) error {
	return &placed{[]string{"items", strconv.Itoa(i)}, fmt.Errorf("items[%d]: %w", i, err)}
}
