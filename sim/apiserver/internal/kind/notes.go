package kind

import (
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/trace"
)

// Entry is what the trace says of a write.
type Entry struct {
	Kind   trace.Kind
	Object trace.Object
	Verb   string
	Fields []trace.Field
}

// Notes makes entries. It keeps the memory of one for the next, since there is a
// record for every write: its Entry is good until the next Write.
type Notes struct {
	Entry
	Kinds *Table

	text  []byte
	texts map[string]string
}

// NewNotes returns notes on the writes to objects of these kinds.
func NewNotes(kinds *Table) *Notes { return &Notes{Kinds: kinds, texts: map[string]string{}} }

// Write makes the entry of a write by a node, or by whoever has no name ("").
func (n *Notes) Write(c Change, by string) {
	in := n.Kinds.Find(c.Kind)
	n.Entry = Entry{
		Kind: trace.KindAPI, Verb: c.Verb, Fields: n.Fields[:0], // a recorder keeps a copy, if any
		Object: trace.Object{Kind: in.noun, Namespace: c.New.GetNamespace(), Name: c.New.GetName()},
	}
	in.Trace(n, c)
	if c.Subresource != "" && c.Subresource != "status" && c.Subresource != "binding" {
		n.Add("subresource", c.Subresource)
	}
	if c.Type == watch.Deleted {
		n.Add("removed", "true")
	}
	if by != "" {
		n.Add("by", by)
	}
	n.Fields = append(n.Fields, trace.Field{Key: "version", Value: c.New.GetResourceVersion()})
}

// Add adds a field with a text.
func (n *Notes) Add(key, text string) { n.Fields = append(n.Fields, trace.Str(key, text)) }

// AddInt adds a field with a number.
func (n *Notes) AddInt(key string, v int64) { n.Fields = append(n.Fields, trace.Int(key, v)) }

// maxTexts bounds Notes.texts.
const maxTexts = 1024

// AddWritten adds a field with what write appends, unless that is nothing and
// need not be said. Such texts (conditions, containers) read the same for all
// pods of a workload, so one copy is shared.
func (n *Notes) AddWritten(key string, always bool, write func(b []byte) []byte) {
	b := write(n.text[:0])
	n.text = b
	if len(b) == 0 && !always {
		return
	}
	text, ok := n.texts[string(b)]
	if !ok {
		if len(n.texts) == maxTexts {
			clear(n.texts)
		}
		text = string(b)
		n.texts[text] = text
	}
	n.Add(key, text)
}

// Named returns a reference to an object, of a kind that need not be served, as
// records name it: "pod default/web-0", "node worker-0".
func (n *Notes) Named(kind, namespace, name string) trace.Object {
	o := trace.Object{Kind: nounOf(Kind(kind)), Namespace: namespace, Name: name}
	if in := n.Kinds.Find(Kind(kind)); in != nil {
		o.Kind = in.noun
		if !in.Namespaced {
			o.Namespace = ""
		}
	}
	return o
}
