package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
	"github.com/drydock-sim/drydock/scenarios/parity"
)

// Case is a recording: the nodes, what was done, and what the real control plane then showed. runs
// are what it showed; only Judge looks at them.
type Case struct {
	Name string `json:"name"`
	// Kind is the theme. It decides how much time the referee allows.
	Kind string `json:"kind"`
	// Nodes are those that are there from the start.
	Nodes []NodeGroup `json:"nodes"`
	// Actions in the order of their times.
	Actions []Action `json:"actions"`
	// Duration is how long it was watched, in seconds.
	Duration float64 `json:"duration"`
	// Align is at which second of a minute of the wall clock the case began; nil if it doesn't say.
	Align *float64 `json:"align,omitempty"`
	// Metrics says that there was a resource metrics API.
	Metrics bool `json:"metrics,omitempty"`
	// Racy are aspects that are not compared.
	Racy []string `json:"racy,omitempty"`

	raw  object // as it was written, for the referee
	runs []run
}

// NodeGroup is nodes of one shape: NAME, or NAME1, NAME2, ... if there are several.
type NodeGroup struct {
	Name          string            `json:"name"`
	Count         int               `json:"count,omitempty"`
	Capacity      v1.ResourceList   `json:"capacity,omitempty"`
	Allocatable   v1.ResourceList   `json:"allocatable,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
	Taints        []v1.Taint        `json:"taints,omitempty"`
	Unschedulable bool              `json:"unschedulable,omitempty"`
}

// names are those of the group's nodes.
func (g *NodeGroup) names() []string {
	if g.Count <= 1 {
		return []string{g.Name}
	}
	out := make([]string, g.Count)
	for i := range out {
		out[i] = fmt.Sprintf("%s%d", g.Name, i+1)
	}
	return out
}

// Action is something done through the API or to a node. Which fields count depends on Do, see
// actions.
type Action struct {
	// At is in seconds after the case's start.
	At        float64         `json:"at"`
	Do        string          `json:"do"`
	Object    json.RawMessage `json:"object"`
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	// Pod is the pod that it is about, instead of Kind and Name.
	Pod                *PodChoice      `json:"pod"`
	Patch              json.RawMessage `json:"patch"`
	Type               string          `json:"type"`
	Subresource        string          `json:"subresource"`
	Replicas           *int32          `json:"replicas"`
	GracePeriodSeconds *int64          `json:"gracePeriodSeconds"`
	PropagationPolicy  *string         `json:"propagationPolicy"`
	Node               string          `json:"node"`
	Group              *NodeGroup      `json:"group"`
	Labels             json.RawMessage `json:"labels"`
	Taint              *v1.Taint       `json:"taint"`
	Remove             bool            `json:"remove"`
	// Condition is what a node posts.
	Condition *v1.NodeCondition `json:"condition"`
	App       string            `json:"app"`
	CPU       string            `json:"cpu"`
	Memory    string            `json:"memory"`
	// Refused says that some of what is done so is refused.
	Refused bool `json:"refused"`
}

// PodChoice is a pod: one by name, or the one at Index, in order of creation, of the living pods
// whose controller is called Owner or Owner-..., and that are on Node if it is said.
type PodChoice struct {
	Name  string `json:"name"`
	Owner string `json:"owner"`
	Index int    `json:"index"`
	Node  string `json:"node"`
}

// UnmarshalJSON implements json.Unmarshaler: a text is a name.
func (p *PodChoice) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &p.Name)
	}
	type plain PodChoice
	return json.Unmarshal(data, (*plain)(p))
}

// Is reports whether data looks like a recording of a cluster: a JSON object that has nodes, which
// recordings of a kubelet haven't.
func Is(data []byte) bool {
	var head struct {
		Nodes json.RawMessage `json:"nodes"`
		Kind  string          `json:"kind"`
	}
	return json.Unmarshal(data, &head) == nil && head.Nodes != nil
}

// Read is Parse, with errors that say where in the data they are, as line:column.
func Read(data []byte) (*Case, error) {
	c, err := Parse(data)
	if err != nil {
		return nil, parity.Locate(data, err)
	}
	return c, nil
}

// Parse reads a recording. Its runs may be missing: it can be replayed then, and not be compared.
// Errors name the action and the field.
func Parse(data []byte) (*Case, error) {
	c := &Case{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &c.raw); err != nil {
		return nil, err
	}
	var rest struct {
		Runs []json.RawMessage `json:"runs"`
	}
	if err := json.Unmarshal(data, &rest); err != nil {
		return nil, err
	}
	for i, data := range rest.Runs {
		r, err := readRun(data)
		if err != nil {
			return nil, fmt.Errorf("runs[%d]: %w", i, err)
		}
		c.runs = append(c.runs, r)
	}
	switch {
	case c.Name == "":
		return nil, errors.New("name: required")
	case strings.ContainsAny(c.Name, "/\\") || c.Name == "." || c.Name == "..":
		return nil, fmt.Errorf("name: %q cannot be a file's name", c.Name)
	case len(c.Nodes) == 0:
		return nil, errors.New("nodes: required")
	case c.Duration <= 0:
		return nil, errors.New("duration: required")
	}
	names := map[string]bool{}
	for i := range c.Nodes {
		for _, n := range c.Nodes[i].names() {
			if n == "" || names[n] {
				return nil, fmt.Errorf("nodes[%d]: name: %q is empty or there are two", i, n)
			}
			names[n] = true
		}
	}
	for i := range c.Actions {
		if err := c.Actions[i].check(); err != nil {
			return nil, fmt.Errorf("actions[%d]: %w", i, err)
		}
	}
	slices.SortStableFunc(c.Actions, func(a, b Action) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	return c, nil
}

// check tells what is wrong with an action.
func (a *Action) check() error {
	kind, known := actions[a.Do]
	switch {
	case a.Do == "":
		return errors.New("do: required")
	case !known:
		return fmt.Errorf("do: %q is none that recordings have%s", a.Do, suggest.Suffix(a.Do, decode.SortedKeys(actions)))
	case a.At < 0:
		return errors.New("at: is negative")
	}
	for _, need := range kind.needs {
		if !need.given(a) {
			return fmt.Errorf("%s: %s: required", a.Do, need.field)
		}
	}
	return nil
}

// Compared reports whether the case has runs to compare with.
func (c *Case) Compared() bool { return len(c.runs) > 0 }

// seconds is a number of a recording as a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
