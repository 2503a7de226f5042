package value

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// MaxPods is how many pods a large machine's memory holds.
const MaxPods = 500_000

// Scope is what a part of a document may ask of the whole, which is known before
// any part is checked.
type Scope struct {
	// Duration is how long the scenario lasts.
	Duration time.Duration
	// Nodes are the nodes' names; empty if they are not known, because the
	// document is wrong about them: then no name can be judged.
	Nodes []string
	// Imagefs reports whether a node has a file system of its own for images.
	Imagefs func(node string) bool
}

// Late reports a time that is after the scenario's end.
func (s *Scope) Late(at decode.Place, t time.Duration) {
	if t > s.Duration {
		at.Errorf("%v is after the scenario's end: its duration is %v", t, s.Duration)
	}
}

// mostCandidates is how many names are looked at for one that was meant: the
// distance to each is computed.
const mostCandidates = 2000

// NoNode says that there is no such node, and which may have been meant.
func (s *Scope) NoNode(name string) string {
	return fmt.Sprintf("there is no node %q%s", decode.Short(name), suggest.Suffix(name, s.Nodes[:min(len(s.Nodes), mostCandidates)]))
}

// Nodes selects nodes by name or pattern (* and ?); it is written as a text or
// as a list of texts. Loading refuses one that selects no node, and fills in the
// only node where one may be left out. Select resolves it.
type Nodes []string

// DecodeYAML takes one text for a list of it.
func (n *Nodes) DecodeYAML(at decode.Place) bool {
	if _, scalar := at.Scalar(); !scalar {
		return false
	}
	if text, ok := at.Text(); ok {
		*n = Nodes{text}
	}
	return true
}

// Select returns those of the nodes that are selected, in the nodes' order, each
// once. An empty selection selects none.
func (n Nodes) Select(from []string) []string {
	if len(n) == 0 {
		return nil
	}
	return lists.Filter(from, func(name string) bool {
		return slices.ContainsFunc(n, func(pattern string) bool { return fakecri.MatchPattern(pattern, name) })
	})
}

// Matches reports whether a name matches a pattern, in which * stands for any
// text and ? for one character.
func Matches(pattern, name string) bool { return fakecri.MatchPattern(pattern, name) }

// Check wants each pattern to select something. One that is required and left
// out is the only node.
func (n *Nodes) Check(at decode.Place, s *Scope, required bool) {
	if len(*n) == 0 {
		switch {
		case !required || len(s.Nodes) == 0:
		case len(s.Nodes) == 1:
			*n = Nodes{s.Nodes[0]}
		default:
			at.Errorf("must be set, as there are %d nodes", len(s.Nodes))
		}
		return
	}
	for i, pattern := range *n {
		if len(s.Nodes) == 0 || slices.ContainsFunc(s.Nodes, func(name string) bool { return fakecri.MatchPattern(pattern, name) }) {
			continue
		}
		where := at
		if len(*n) > 1 {
			where = at.Index(i)
		}
		where.Errorf("%s", s.NoNode(pattern))
	}
}

// PodRef is "namespace/name" of a pod that may be named without a namespace.
func PodRef(at decode.Place, pod string) string {
	if pod == "" {
		return ""
	}
	ns, name, ok := strings.Cut(pod, "/")
	if !ok {
		return v1.NamespaceDefault + "/" + pod
	}
	if ns == "" || name == "" || strings.Contains(name, "/") {
		at.Errorf("%q is no pod: want name or namespace/name", decode.Short(pod))
	}
	return pod
}

// Namespace is the namespace that an object of the kind is in if a document says
// ns; at is the place of what names the object, in whose field namespace it is
// wrong.
func Namespace(at decode.Place, kind, ns string) string {
	namespaced := apiserver.NewKindsWith(apiserver.AllGates()).Namespaced(apiserver.Kind(kind))
	if ns != "" && !namespaced {
		at.Field("namespace").Errorf("a %s has no namespace", kind)
	}
	if ns == "" && namespaced {
		return v1.NamespaceDefault
	}
	return ns
}

// NotNegative refuses a number below 0.
func NotNegative[N int | int64 | time.Duration](at decode.Place, n N) {
	if n < 0 {
		at.Errorf("%v is negative", n)
	}
}
