package decode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds how large a file may become once its aliases are expanded: a
// few lines of aliases of aliases would fill any memory. It is the known attack of nested aliases
// ("billion laughs"), which a scenario from somebody else may hold by accident too. The budget is
// the file's, over all of its documents.
const maxNodes = 2_000_000

// yamlLine takes the line out of an error of the YAML library.
var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)$`)

// Documents returns the documents of a file, with aliases and merge keys
// expanded, so that no node is shared. Empty documents are left out. What is no
// YAML is reported. Reading stops at the first document that is no YAML: where the next begins is
// not known then. Those before it are returned.
func (r *Reader) Documents(file string, data []byte) []Place {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var docs []Place
	budget := maxNodes
	for {
		var doc yaml.Node
		err := safely(func() error { return dec.Decode(&doc) })
		if errors.Is(err, io.EOF) {
			return docs
		}
		if err != nil {
			e := &Error{Pos: Position{File: file}, Message: OneLine(err.Error())}
			if m := yamlLine.FindStringSubmatch(e.Message); m != nil {
				e.Pos.Line, _ = strconv.Atoi(m[1])
				// The library's messages begin with "yaml: line N: ", of which the line becomes
				// the position.
				e.Message = "bad YAML: " + m[2]
				if e.Pos.Line > 0 {
					e.Pos.Column = 1
				}
			}
			r.report(e)
			return docs
		}
		if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
			continue
		}
		root, err := expand(doc.Content[0], &budget, 0)
		if err != nil {
			r.report(&Error{Pos: Position{file, doc.Line, doc.Column}, Message: err.Error()})
			return docs
		}
		docs = append(docs, Place{doc: &document{r: r, file: file, data: data}, node: root, show: root, path: &path{}})
	}
}

// safely turns a panic of the YAML library into an error. The parser has been known to panic on
// malformed input; a tool that is fed by hand must not die of it.
func safely(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	return fn()
}

// maxDepth bounds how deep a tree is, so that an alias within its own anchor ends.
const maxDepth = 1000

// expand returns a copy of a node in which aliases are replaced by what they
// stand for, and merge keys by what they merge. Positions: what an alias stands for gets the line
// of the alias, since that is where the user put it. Its parts keep the lines of the anchor.
//
// A mapping's own keys win over merged ones, and of several merged mappings the first wins (YAML
// 1.1 merge key type).
func expand(n *yaml.Node, budget *int, depth int) (*yaml.Node, error) {
	if *budget--; *budget < 0 || depth > maxDepth {
		return nil, fmt.Errorf("too large or too deep once its aliases are expanded")
	}
	if n.Kind == yaml.AliasNode {
		x, err := expand(n.Alias, budget, depth+1)
		if err == nil {
			x.Line, x.Column = n.Line, n.Column
		}
		return x, err
	}
	c := *n
	c.Anchor, c.Content = "", nil
	if len(n.Content) > 0 {
		c.Content = make([]*yaml.Node, 0, len(n.Content))
	}
	if n.Kind != yaml.MappingNode {
		for _, x := range n.Content {
			y, err := expand(x, budget, depth+1)
			if err != nil {
				return nil, err
			}
			c.Content = append(c.Content, y)
		}
		return &c, nil
	}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, err := expand(n.Content[i], budget, depth+1)
		if err != nil {
			return nil, err
		}
		v, err := expand(n.Content[i+1], budget, depth+1)
		if err != nil {
			return nil, err
		}
		if k.Tag != "!!merge" {
			c.Content = append(c.Content, k, v)
			continue
		}
		switch v.Kind {
		case yaml.MappingNode:
			merged = append(merged, v)
		case yaml.SequenceNode:
			merged = append(merged, v.Content...)
		default:
			return nil, fmt.Errorf("<< on line %d must have a mapping", k.Line)
		}
	}
	for _, m := range merged {
		if m.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("<< must have mappings")
		}
		for i := 0; i+1 < len(m.Content); i += 2 {
			if lookup(&c, m.Content[i].Value) == nil {
				c.Content = append(c.Content, m.Content[i], m.Content[i+1])
			}
		}
	}
	return &c, nil
}

// lookup returns the value of a mapping's key, or nil.
func lookup(n *yaml.Node, key string) *yaml.Node {
	if _, v := entry(n, key); v != nil {
		return v
	}
	return nil
}

// entry returns the key and the value of a mapping's key, or nils.
func entry(n *yaml.Node, key string) (k, v *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// describe says what a node is, for "want ..., got ...".
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "the number " + Short(n.Value)
	case "!!bool":
		return Short(n.Value)
	case "!!null":
		return "nothing"
	}
	return "the text " + strconv.Quote(Short(n.Value))
}

// Short cuts a text of the user's to what an error can show. In runes, so that no character is
// cut in half.
func Short(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "..."
	}
	return s
}

// Plain is the value as encoding/json makes JSON of it. It is for values of no known type, such
// as the parameters of an expression or a RawExtension.
func (at Place) Plain() any { return plain(at.node) }

func plain(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = plain(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, x := range n.Content {
			out = append(out, plain(x))
		}
		return out
	}
	switch n.ShortTag() {
	case "!!int":
		var i int64
		if n.Decode(&i) == nil {
			return i
		}
		var u uint64
		if n.Decode(&u) == nil {
			return u
		}
	case "!!float":
		var f float64
		// Infinities are kept as texts: JSON has no form for them.
		if n.Decode(&f) == nil && f == f && f-f == 0 {
			return f
		}
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!null":
		return nil
	}
	return n.Value
}
