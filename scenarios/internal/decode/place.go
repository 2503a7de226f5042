package decode

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Position is a place in a file. Lines and columns count from 1; 0 means that
// there is none.
type Position struct {
	File         string
	Line, Column int
}

func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Place is a field of a document, whether or not it is written: its path, its
// value, and what to point at in an error. Places are values, made when they are
// asked for; the text of a path is made for errors only, since a large document
// has as many places as it has words. A place knows its reader, so whoever holds one can report;
// and a place that is not written is as good as another, so that a check can say "must be set" of
// a field at the line of the mapping that lacks it.
type Place struct {
	doc *document
	// node is the value; nil: it is not written.
	node *yaml.Node
	// key is what the value stands behind; nil in a list.
	key *yaml.Node
	// show is what an error of a check points at: a scalar itself, of all else
	// the key, and for what is not written the nearest thing above it.
	show *yaml.Node
	path *path
}

// document is what all places of a document share.
type document struct {
	r    *Reader
	file string
	data []byte
	// bad are the paths that could not be decoded, once Settle was called. Texts of paths
	// suffice: there are as many as mistakes, mostly none.
	bad []string
}

// path is the way to a field, from the end. It is a list from the end, so that going down a tree
// costs one small allocation and siblings share what is above them.
type path struct {
	up     *path
	key    string
	index  int    // when key is ""
	quoted bool   // the key is written ["key"] whatever it is
	text   string // the whole path, when it is known as a text
}

// The result is what kubectl explain and field.Path would write, apart from keys that need
// quotes.
func (p *path) String() string {
	if p.up == nil {
		return p.text
	}
	head := p.up.String()
	switch {
	case p.text != "":
		return join(head, p.text)
	case p.key == "":
		return fmt.Sprintf("%s[%d]", head, p.index)
	case p.quoted || !IsPlainKey(p.key):
		return fmt.Sprintf("%s[%q]", head, p.key)
	}
	return join(head, p.key)
}

// join appends a field's path, either part of which may be empty.
func join(head, text string) string {
	if head == "" || text == "" || text[0] == '[' {
		return head + text
	}
	return head + "." + text
}

// IsPlainKey reports whether a key is written in a path without quotes. It is the same set that
// parseSet takes without quotes, so that what an error prints can be given to --set.
func IsPlainKey(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			return false
		}
	}
	return s != ""
}

// Field returns the place of a mapping's field. It costs a walk through the mapping's keys.
// Mappings are small.
func (at Place) Field(name string) Place {
	return at.entry(name, &path{up: at.path, key: name})
}

// Key is Field for a mapping whose keys are the user's: its path has the key in
// quotes.
func (at Place) Key(key string) Place {
	return at.entry(key, &path{up: at.path, key: key, quoted: true})
}

func (at Place) entry(key string, p *path) Place {
	k, v := entry(at.node, key)
	return at.below(k, v, p)
}

// below is a place within this one, or one that is not written if v is nil. A key is pointed at
// rather than the mapping behind it, whose first line is the first of its fields; a scalar is
// pointed at itself.
func (at Place) below(key, v *yaml.Node, p *path) Place {
	out := Place{at.doc, v, key, at.show, p}
	switch {
	case v == nil:
	case key == nil || v.Kind == yaml.ScalarNode:
		out.show = v
	default:
		out.show = key
	}
	return out
}

// Index returns the place of a list's element. An index beyond the end gives a place that is not
// written, at the list.
func (at Place) Index(i int) Place {
	p := &path{up: at.path, index: i}
	if at.node == nil || at.node.Kind != yaml.SequenceNode || i >= len(at.node.Content) {
		return at.below(nil, nil, p)
	}
	return at.below(nil, at.node.Content[i], p)
}

// Path returns the place that a text names, such as "containers[0].image" or
// `labels[a/b]`. It is for errors of others, which name fields so. It goes as far as the text
// leads, since validation of the API names fields after defaulting, which the document need not
// have; the error then points at the nearest thing above. The path that is printed is the text as
// it came.
func (at Place) Path(text string) Place {
	if text == "" || text == "<nil>" { // a field.Error without a field
		return at
	}
	out, rest := at, text
	for rest != "" && out.node != nil {
		var key string
		index := -1
		if rest[0] == '[' {
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				break
			}
			key, rest = rest[1:end], rest[end+1:]
			// A number in brackets may be a label's key as well: the node decides.
			if i, err := strconv.Atoi(key); err == nil && out.node.Kind == yaml.SequenceNode {
				index = i
			}
			key = strings.Trim(key, `"`)
		} else {
			rest = strings.TrimPrefix(rest, ".")
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			key, rest = rest[:end], rest[end:]
		}
		if index >= 0 {
			out = out.Index(index)
		} else {
			out = out.Field(key)
		}
	}
	out.path = &path{up: at.path, text: text}
	return out
}

// Root is the place as that of a document of its own: an error that is nowhere
// nearer points at the value, not at the key that it stands behind. It is for documents that
// stand within another file, such as a manifest below a key.
func (at Place) Root() Place {
	at.show = at.node
	return at
}

// Named is the place with a path of its own, for a part that has another in the
// file that it was taken from.
func (at Place) Named(name string) Place {
	at.path = &path{text: name}
	return at
}

// Alone is the place as the only element of a list. One element may stand where a list is wanted,
// in fields that allow it; what follows need not know.
func (at Place) Alone() Place {
	at.node = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: at.node.Line, Column: at.node.Column, Content: []*yaml.Node{at.node}}
	return at
}

// String is the place's path, as errors have it.
func (at Place) String() string { return at.path.String() }

// Written reports whether there is a value, which may be null.
func (at Place) Written() bool { return at.node != nil }

// Pos is where the place is written, or what is nearest above it.
func (at Place) Pos() Position { return at.doc.pos(at.show) }

// pos is the position of a node; one that comes from --set has that as its file. An override has
// no line; and the argument itself says more than one.
func (d *document) pos(n *yaml.Node) Position {
	if n == nil {
		return Position{File: d.file}
	}
	if arg, ok := d.r.sets[n]; ok {
		return Position{File: setFile(arg)}
	}
	return Position{d.file, n.Line, n.Column}
}

// Errorf reports what is wrong with a decoded value. It reports nothing if the
// field, something in it or what it is in could not be decoded: what follows
// from that mistake is not worth telling. So a misspelt duration yields its one error and not
// three more about a default that was never meant. Settle has to have been called for the
// document; before, nothing counts as bad.
func (at Place) Errorf(format string, args ...any) {
	if !at.Bad() {
		at.Report(at.Pos(), fmt.Sprintf(format, args...))
	}
}

// Report is Errorf for a position that the caller knows better, such as a line
// of a file that the field names. It always reports.
func (at Place) Report(pos Position, message string) {
	at.doc.r.report(&Error{Pos: pos, Path: at.String(), Message: OneLine(message)})
}

// Bad reports whether the field, something in it or what it is in could not be
// decoded.
func (at Place) Bad() bool {
	if len(at.doc.bad) == 0 {
		return false
	}
	name := at.String()
	for _, b := range at.doc.bad {
		long, short := name, b
		if len(long) < len(short) {
			long, short = short, long
		}
		// Either contains the other if the longer path goes on with a field or an index at the
		// end of the shorter: spec.node is no part of spec.nodes.
		if rest, ok := strings.CutPrefix(long, short); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// Missing reports that a field of the place's mapping must be set.
func (at Place) Missing(field string) { at.Field(field).refuse(at.node, "must be set") }

// Errors is how many errors there are so far, in all documents of the reader.
func (at Place) Errors() int { return len(at.doc.r.errs) }

// Settle ends the decoding of the place's document, whose errors are those from
// the given number on: checks below them report nothing from now on. It is called once decoding
// is over and before the checks begin.
func (at Place) Settle(before int) {
	for _, e := range at.doc.r.errs[before:] {
		at.doc.bad = append(at.doc.bad, e.Path)
	}
}

// ReadFile reads a file that the place's value names, relative to the document's
// own file. What fails is reported. Relative to the document's own file rather than to the
// working directory, so that a scenario can be run from anywhere.
func (at Place) ReadFile(name string) (file string, data []byte, ok bool) {
	file = at.relative(name)
	data, ok = at.read(file)
	return file, data, ok
}

func (at Place) read(file string) ([]byte, bool) {
	data, err := at.doc.r.readFile(file)
	if err != nil {
		at.Errorf("cannot read the file: %v", err)
	}
	return data, err == nil
}

// stdin is how standard input is named.
const stdin = "-"

// relative is a file's name as seen from the document's own file.
func (at Place) relative(name string) string {
	if name == stdin || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(at.doc.file), name)
}

// Documents reads the documents of a file that the place's value names, or of the
// manifests of a directory; "-" is standard input. Their paths begin anew.
func (at Place) Documents(name string) []Place {
	files := []string{at.relative(name)}
	if read := at.doc.r.ReadDir; read != nil && name != stdin {
		list, err := read(files[0])
		if err != nil {
			at.Errorf("%v", err)
			return nil
		}
		if list != nil {
			files = list
		}
	}
	before := at.Errors()
	var docs []Place
	for _, f := range files {
		if data, ok := at.read(f); ok {
			docs = append(docs, at.doc.r.Documents(f, data)...)
		}
	}
	if len(docs) == 0 && at.Errors() == before {
		at.Errorf("%s has no objects", name)
	}
	return docs
}

// Inside turns a line and a column within a text into a position in the file, as
// well as the way in which the text is written allows. Line and column count from 1 within the
// text. It is for expressions and scripts whose own parsers tell positions: a literal block (|)
// keeps lines, a quoted or plain scalar is on one line mostly, and in a folded one (>) nobody can
// say, so its beginning has to do.
func (at Place) Inside(line, column int) Position {
	n, pos := at.node, at.doc.pos(at.node)
	if n == nil || pos.Line == 0 {
		return pos
	}
	switch {
	case n.Style&yaml.LiteralStyle != 0:
		// The text begins on the next line, at an indentation that only the
		// file tells.
		pos.Line += line
		lines := strings.Split(string(at.doc.data), "\n")
		if pos.Line <= len(lines) {
			// Lines after the first keep what they are indented further. n.Line is the line of
			// the | itself, from 1: as an index from 0 it is the first line of the text.
			first := lines[n.Line]
			pos.Column = len(first) - len(strings.TrimLeft(first, " ")) + column
		}
	case n.Style&yaml.FoldedStyle != 0:
		pos.Line, pos.Column = pos.Line+1, 1
	case line == 1:
		pos.Column += column - 1
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			pos.Column++
		}
	}
	return pos
}

// SortedKeys are the keys of a map, in order.
func SortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m { //drydock:unordered sorted below
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
