package topologymanager

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
)

func nodes(n int) *cm.Topology {
	t := &cm.Topology{}
	for i := range n {
		d := make([]int, n)
		for k := range d {
			if d[k] = 20 + max(i-k, k-i); k == i {
				d[k] = 10
			}
		}
		t.Nodes = append(t.Nodes, cm.NUMANode{ID: i, Distances: d})
	}
	return t
}

// parse reads hints such as "01p 11"; "any" and "anyp" are masks of no node, ""
// is an empty list and "-" none.
func parse(s string) []Hint {
	if s == "-" {
		return nil
	}
	out := []Hint{}
	for _, f := range strings.Fields(s) {
		var h Hint
		f, h.Preferred = strings.CutSuffix(f, "p")
		if f != "any" {
			if _, err := fmt.Sscanf(f, "%b", &h.Affinity); err != nil {
				panic(err)
			}
		}
		out = append(out, h)
	}
	return out
}

// fake gives hints, and notes what it was told to allocate.
type fake struct {
	hints []Hints
	m     *Manager
	got   []string
	err   error
}

func (f *fake) GetTopologyHints(*v1.Pod, *v1.Container) []Hints { return f.hints }
func (f *fake) GetPodTopologyHints(*v1.Pod) []Hints             { return f.hints }
func (f *fake) Allocate(_ context.Context, _ *v1.Pod, c *v1.Container) error {
	h := f.m.GetAffinity(c.Name)
	f.got = append(f.got, fmt.Sprintf("%s:%b/%t", c.Name, h.Affinity, h.Preferred))
	return f.err
}

func TestMerge(t *testing.T) {
	for _, tc := range []struct {
		name     string
		nodes    int
		hints    [][]string // by provider and resource
		best     string     // best-effort
		strict   bool       // restricted admits
		single   string     // what single-numa-node stores
		admitted bool       // by single-numa-node
	}{
		{"the worked example that fits", 2, [][]string{{"01p 10p 11"}, {"10p 11"}}, "10/true", true, "10/true", true},
		{"the worked example that does not", 2, [][]string{{"01p 11"}, {"10p 11"}}, "1/false", false, "0/false", false},
		{"nobody minds", 2, [][]string{nil, {"-"}}, "11/true", true, "0/true", true},
		{"what can't be had", 2, [][]string{{"01p"}, {""}}, "1/false", false, "0/false", false},
		{"no hints but for one", 2, [][]string{{"01p 10p 11"}, nil}, "1/true", true, "1/true", true},
		{"preferred, but more than a node", 4, [][]string{{"0011p 1100p"}, {"1100p 1111"}}, "1100/true", true, "0/false", false},
		{"preferred masks that differ", 4, [][]string{{"0011p"}, {"0110p"}}, "10/false", false, "0/false", false},
		{"as many nodes as the neediest wants", 4, [][]string{{"0011 0111 1111"}, {"0001 0011 1111"}}, "11/false", false, "0/false", false},
		{"narrower if all are wider", 4, [][]string{{"0001 1111"}, {"0111 1111"}}, "111/false", false, "0/false", false},
		{"nothing in common", 2, [][]string{{"01p"}, {"10p"}}, "11/false", false, "0/false", false},
	} {
		for policy, want := range map[string]struct {
			stored string
			admit  bool
		}{PolicyBestEffort: {tc.best, true}, PolicyRestricted: {tc.best, tc.strict}, PolicySingleNUMANode: {tc.single, tc.admitted}} {
			m, err := New(nodes(tc.nodes), policy, ScopeContainer, Options{MaxAllowableNUMANodes: 8})
			if err != nil {
				t.Fatal(err)
			}
			var providers [][]Hints
			for _, p := range tc.hints {
				var hints []Hints
				for _, s := range p {
					hints = append(hints, Hints{Resource: "r", List: parse(s)})
				}
				providers = append(providers, hints)
			}
			h, admit := m.merge(providers)
			if got := fmt.Sprintf("%b/%t", h.Affinity, h.Preferred); got != want.stored || admit != want.admit {
				t.Errorf("%s: %s: got %s, admitted %t; want %+v", tc.name, policy, got, admit, want)
			}
		}
	}
}

func TestClosest(t *testing.T) {
	for closest, want := range map[bool]Mask{false: NewMask(0, 2), true: NewMask(2, 3)} {
		m, err := New(nodes(4), PolicyBestEffort, ScopeContainer, Options{PreferClosestNUMANodes: closest, MaxAllowableNUMANodes: 8})
		if err != nil {
			t.Fatal(err)
		}
		if h, _ := m.merge([][]Hints{{{List: parse("0101p 1100p 1010p")}}}); h.Affinity != want {
			t.Errorf("closest %t: got %b", closest, h.Affinity)
		}
	}
}

func TestAdmit(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{InitContainers: []v1.Container{{Name: "i"}}, Containers: []v1.Container{{Name: "a"}, {Name: "b"}}}}
	for _, tc := range []struct {
		policy, scope, hints string
		err                  error
		want                 string // what was allocated, or the refusal
	}{
		{PolicyNone, ScopePod, "", nil, "i:0/false a:0/false b:0/false"},
		{PolicyRestricted, ScopeContainer, "10p", nil, "i:10/true a:10/true b:10/true"},
		{PolicySingleNUMANode, ScopePod, "01p", nil, "i:1/true a:1/true b:1/true"},
		{PolicyRestricted, ScopePod, "01", nil, "TopologyAffinityError: Resources cannot be allocated with Topology locality"},
		{PolicyNone, ScopeContainer, "", errors.New("none left"), "UnexpectedAdmissionError: Allocate failed due to none left, which is unexpected"},
		{PolicyNone, ScopeContainer, "", typed{}, "Odd: it is odd"},
	} {
		m, err := New(nodes(2), tc.policy, tc.scope, Options{MaxAllowableNUMANodes: 8})
		if err != nil {
			t.Fatal(err)
		}
		f := &fake{hints: []Hints{{Resource: "cpu", List: parse(tc.hints)}}, m: m, err: tc.err}
		m.AddHintProvider(f)
		r := m.Admit(context.Background(), &lifecycle.PodAdmitAttributes{Pod: pod})
		got := strings.Join(f.got, " ")
		if !r.Admit {
			got = r.Reason + ": " + r.Message
		}
		if got != tc.want {
			t.Errorf("%s %s: got %s, want %s", tc.policy, tc.scope, got, tc.want)
		}
		if len(m.hints) > 0 {
			t.Errorf("%s: hints are left", tc.policy)
		}
	}
}

type typed struct{}

func (typed) Error() string { return "it is odd" }
func (typed) Type() string  { return "Odd" }

func TestOptions(t *testing.T) {
	for _, tc := range []struct{ name, value, want string }{
		{"prefer-closest-numa-nodes", "true", "<nil>"},
		{"prefer-closest-numa-nodes", "1.5", `bad value for option "prefer-closest-numa-nodes": strconv.ParseBool: parsing "1.5": invalid syntax`},
		{"max-allowable-numa-nodes", "16", "<nil>"},
		{"max-allowable-numa-nodes", "7", `the minimum value of "max-allowable-numa-nodes" should not be less than 8`},
		{"max-numa-nodes", "16", `unknown Topology Manager Policy option: "max-numa-nodes"`},
	} {
		if _, err := ParseOptions(map[string]string{tc.name: tc.value}); fmt.Sprint(err) != tc.want {
			t.Errorf("%s=%s: got %v", tc.name, tc.value, err)
		}
	}
	if _, err := New(nodes(9), PolicyRestricted, ScopePod, Options{MaxAllowableNUMANodes: 8}); fmt.Sprint(err) != "unsupported on machines with more than 8 NUMA Nodes" {
		t.Errorf("got %v", err)
	}
	if _, err := New(nodes(9), PolicyNone, ScopePod, Options{MaxAllowableNUMANodes: 8}); err != nil {
		t.Error(err)
	}
}
