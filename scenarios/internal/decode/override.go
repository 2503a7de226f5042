package decode

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
)

// step is one step of an override's path. Exactly one of the three forms is set.
type step struct {
	key   string
	index int  // when key is ""
	all   bool // [*]
}

// parseSet takes `spec.nodes[*].kubelet.evictionHard["memory.available"]=500Mi`
// apart. The syntax is that of kubectl's JSONPath as far as it names one place, with quotes for
// keys that hold dots, as labels and eviction signals do. It is parsed by hand, since the value
// after the first = at the top may hold anything.
func parseSet(arg string) (steps []step, value string, err error) {
	rest := arg
	for first := true; ; first = false {
		switch {
		case rest == "":
			return nil, "", fmt.Errorf("want PATH=VALUE, but there is no =")
		case rest[0] == '=':
			if first {
				return nil, "", fmt.Errorf("want PATH=VALUE, but there is no path")
			}
			return steps, rest[1:], nil
		case rest[0] == '[':
			var s step
			if s, rest, err = parseBracket(rest); err != nil {
				return nil, "", err
			}
			if first {
				return nil, "", fmt.Errorf("a path begins with a field's name")
			}
			steps = append(steps, s)
		default:
			if rest[0] == '.' {
				if first {
					return nil, "", fmt.Errorf("a path begins with a field's name")
				}
				rest = rest[1:]
			} else if !first {
				return nil, "", fmt.Errorf("want . or [ before %q", Short(rest))
			}
			n := strings.IndexAny(rest, ".[=")
			if n < 0 {
				n = len(rest)
			}
			if !IsPlainKey(rest[:n]) {
				return nil, "", fmt.Errorf("%q is no field's name (other keys are written [\"key\"])", Short(rest[:n]))
			}
			steps = append(steps, step{key: rest[:n]})
			rest = rest[n:]
		}
	}
}

// parseBracket takes one step in brackets off the path: [0], [*] or ["key"].
func parseBracket(s string) (step, string, error) {
	// Either quote may be used: shells take one of them.
	if len(s) > 1 && (s[1] == '"' || s[1] == '\'') {
		end := strings.IndexByte(s[2:], s[1])
		if end < 0 || len(s) <= 3+end || s[3+end] != ']' {
			return step{}, "", fmt.Errorf("%q does not end with %c]", Short(s), s[1])
		}
		if end == 0 {
			return step{}, "", fmt.Errorf("a key must not be empty")
		}
		return step{key: s[2 : 2+end]}, s[4+end:], nil
	}
	end := strings.IndexByte(s, ']')
	if end < 0 {
		return step{}, "", fmt.Errorf("%q has no ]", Short(s))
	}
	if s[1:end] == "*" {
		return step{all: true}, s[end+1:], nil
	}
	i, err := strconv.Atoi(s[1:end])
	if err != nil || i < 0 {
		return step{}, "", fmt.Errorf("[%s] is none of [0], [*] and [\"key\"]", Short(s[1:end]))
	}
	return step{index: i}, s[end+1:], nil
}

// Override applies --set arguments, `PATH=VALUE`, to a document, in their order.
// Errors have the argument for a file. It changes the document's tree before decoding. So what is
// set is checked like what is written, and an override of a field that nobody knows is found the
// same way.
func (r *Reader) Override(doc Place, args []string) {
	for _, arg := range args {
		if err := r.override(doc.node, arg); err != nil {
			r.report(&Error{Pos: Position{File: setFile(arg)}, Message: OneLine(err.Error())})
		}
	}
}

// setFile stands for the file of what comes from an override.
func setFile(arg string) string { return "--set '" + OneLine(arg) + "'" }

// override applies one argument.
func (r *Reader) override(doc *yaml.Node, arg string) error {
	steps, text, err := parseSet(arg)
	if err != nil {
		return err
	}
	var v yaml.Node
	// The value is YAML: 5 is a number, {a: 1} a mapping, and nothing after the = an empty text.
	if err := safely(func() error { return yaml.Unmarshal([]byte(text), &v) }); err != nil {
		return fmt.Errorf("the value is bad YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	value := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: ""}
	if len(v.Content) > 0 {
		value = v.Content[0]
	}
	return r.setAt(doc, steps, value, arg, "")
}

// setAt walks the steps from n, whose path is at, and puts the value at their
// end. Mappings on the way that are not there are made; lists are not, since
// nobody can say how long they should be. [*] means every element that is there; of none it is a
// mistake rather than nothing, since an override that does nothing is never meant.
func (r *Reader) setAt(n *yaml.Node, steps []step, value *yaml.Node, arg, at string) error {
	s := steps[0]
	last := len(steps) == 1
	if s.key == "" {
		if n.Kind != yaml.SequenceNode {
			return fmt.Errorf("%s is %s, not a list", at, describe(n))
		}
		lo, hi := s.index, s.index+1
		if s.all {
			lo, hi = 0, len(n.Content)
		}
		if hi > len(n.Content) || lo == hi {
			return fmt.Errorf("%s has %d elements", at, len(n.Content))
		}
		for i := lo; i < hi; i++ {
			if last {
				c, err := r.fresh(value, arg)
				if err != nil {
					return err
				}
				n.Content[i] = c
			} else if err := r.setAt(n.Content[i], steps[1:], value, arg, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
		return nil
	}
	// "key:" without a value becomes a mapping when something is set below it, at the place of
	// the null.
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		*n = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column}
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("%s is %s, not a mapping", at, describe(n))
	}
	next := strings.TrimPrefix(at+"."+s.key, ".")
	_, child := entry(n, s.key)
	if last {
		c, err := r.fresh(value, arg)
		if err != nil {
			return err
		}
		r.put(n, s.key, c, arg)
		return nil
	}
	if child == nil {
		if steps[1].key == "" {
			return fmt.Errorf("there is no %s%s", next, suggest.Suffix(s.key, keysOf(n)))
		}
		child = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		r.sets[child] = arg
		r.put(n, s.key, child, arg)
	}
	// A new mapping has no line; as its position errors have the override.
	return r.setAt(child, steps[1:], value, arg, next)
}

// keysOf are a mapping's keys, for who misspells one.
func keysOf(n *yaml.Node) []string {
	var out []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		out = append(out, n.Content[i].Value)
	}
	return out
}

// put sets a mapping's key.
func (r *Reader) put(n *yaml.Node, key string, v *yaml.Node, arg string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i+1] = v
			return
		}
	}
	k := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}
	r.sets[k] = arg
	n.Content = append(n.Content, k, v)
}

// fresh copies a value, since [*] puts it into several places, and notes where it
// comes from. Expansion copies; and nodes are remembered by identity, so two places must not
// share one.
func (r *Reader) fresh(v *yaml.Node, arg string) (*yaml.Node, error) {
	c, err := expand(v, new(100_000), 0)
	if err != nil {
		return nil, err
	}
	r.mark(c, arg)
	return c, nil
}

// mark notes for a tree that it comes from an override, which is then its
// position. Each node, not only the root: an error may be about any.
func (r *Reader) mark(n *yaml.Node, arg string) {
	r.sets[n] = arg
	for _, c := range n.Content {
		r.mark(c, arg)
	}
}
