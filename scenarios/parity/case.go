package parity

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/sim"
)

// Case is a recording: what was done, and what the real kubelet then showed. runs are what the
// real kubelet showed; only Judge looks at them.
type Case struct {
	Name string `json:"name"`
	// Duration is how long a node case was watched, and the actions of a pod
	// case were given, in seconds.
	Duration float64 `json:"duration,omitempty"`
	// Config is what the node's configuration adds to that of all recordings.
	Config *kubeletconfig.KubeletConfiguration `json:"config,omitempty"`
	// Machine says what the machine had free before the pods came, where
	// thresholds depend on it.
	Machine Machine `json:"machine"`
	// Actions in the order of their times.
	Actions []Action `json:"actions"`

	runs []object
}

// Action is something done to the recorded node or through the API. Which fields count depends on
// Action, see actions.
type Action struct {
	// At is in seconds after the case's start.
	At                 float64           `json:"at"`
	Action             string            `json:"action"`
	Pod                *v1.Pod           `json:"pod"`
	Namespace          string            `json:"namespace"`
	Name               string            `json:"name"`
	Data               map[string]string `json:"data"`
	Container          string            `json:"container"`
	GracePeriodSeconds *int64            `json:"gracePeriodSeconds"`
	Patch              json.RawMessage   `json:"patch"`
	File               string            `json:"file"`
	Manifest           json.RawMessage   `json:"manifest"`
	// RejectedByAPI says that the API server refused it.
	RejectedByAPI bool `json:"rejectedByAPI"`
}

// Parse reads a recording. Its runs may be missing: it can be replayed then,
// and not be compared. A recording without runs is one that somebody wrote by hand.
func Parse(data []byte) (*Case, error) {
	c := &Case{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, position(data, err)
	}
	var rest struct {
		Runs []object `json:"runs"`
	}
	if err := json.Unmarshal(data, &rest); err != nil {
		return nil, position(data, err)
	}
	c.runs = rest.Runs
	if c.Name == "" {
		return nil, errors.New("name: required")
	}
	if strings.ContainsAny(c.Name, "/\\") || c.Name == "." || c.Name == ".." {
		return nil, fmt.Errorf("name: %q cannot be a file's name", c.Name)
	}
	// Only the error matters here: an amount that can't be read.
	if err := c.Machine.use(&sim.NodeOptions{}); err != nil {
		return nil, err
	}
	for i := range c.Actions {
		if err := c.check(&c.Actions[i]); err != nil {
			return nil, fmt.Errorf("actions[%d]: %w", i, err)
		}
	}
	return c, nil
}

// check tells what is wrong with an action.
func (c *Case) check(a *Action) error {
	kind, known := actions[a.Action]
	switch {
	case a.Action == "":
		return errors.New("action: required")
	case !known:
		return fmt.Errorf("action: %q is none that recordings have", a.Action)
	case a.At < 0:
		return errors.New("at: is negative")
	}
	for _, need := range kind.needs {
		if !need.given(a) {
			return fmt.Errorf("%s: %s: required", a.Action, need.field)
		}
	}
	if kind.ofPod && c.target(a) == (types.NamespacedName{}) {
		return fmt.Errorf("%s: no pod is created that it could be about", a.Action)
	}
	return nil
}

// Compared reports whether the case has runs to compare with.
func (c *Case) Compared() bool { return len(c.runs) > 0 }

// ofNode reports whether the case is about a node and all its pods. Such a case
// ran alone.
func (c *Case) ofNode() bool { return strings.HasPrefix(c.Name, "node-") }

// collectsImages reports whether the case says when images are removed. Such cases were watched
// longer.
func (c *Case) collectsImages() bool {
	k := c.Config
	return k != nil && (k.ImageGCHighThresholdPercent != nil || k.ImageGCLowThresholdPercent != nil || k.ImageMinimumGCAge.Duration != 0 || k.ImageMaximumGCAge.Duration != 0)
}

// target is the pod that an action is about: unless it says, that of the case.
func (c *Case) target(a *Action) types.NamespacedName {
	if a.Name != "" {
		return types.NamespacedName{Namespace: namespaceOf(a), Name: a.Name}
	}
	for i := range c.Actions {
		if p := c.Actions[i].Pod; p != nil {
			ns := cmp.Or(p.Namespace, v1.NamespaceDefault)
			return types.NamespacedName{Namespace: ns, Name: p.Name}
		}
	}
	return types.NamespacedName{}
}

// namespaceOf is the namespace of what an action names; default unless it says
// another.
func namespaceOf(a *Action) string {
	if a.Namespace != "" {
		return a.Namespace
	}
	return v1.NamespaceDefault
}

// How long cases were watched.
const (
	// Pod cases were run side by side, in two groups, told by their image. All
	// of a group were watched until the last was about to be over; then what
	// was left of them was deleted by force, of which only calls were recorded. The numbers are
	// those of the recording scripts.
	plainGroup = 376 * time.Second
	fullGroup  = 125 * time.Second
	fullImage  = ":full"
	clearing   = 12 * time.Second
	// A node case that doesn't say is watched for a minute at least, and for a
	// while after its last action.
	nodeWatch   = 70 * time.Second
	afterAction = 41 * time.Second
)

// watched is how long the case was watched, from its start. What happens later was not recorded,
// and so must not be replayed.
func (c *Case) watched() time.Duration {
	end := seconds(c.Duration)
	if c.ofNode() && end > 0 {
		return end
	}
	for i := range c.Actions {
		end = max(end, seconds(c.Actions[i].At)+afterAction)
	}
	if c.ofNode() {
		return max(end, nodeWatch)
	}
	group := plainGroup
	if c.usesImage(fullImage) {
		group = fullGroup
	}
	return max(end, group)
}

// usesImage reports whether a container of the case's pods has an image that
// ends so.
func (c *Case) usesImage(suffix string) bool {
	for i := range c.Actions {
		p := c.Actions[i].Pod
		if p == nil {
			continue
		}
		for _, list := range [...][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for k := range list {
				if strings.HasSuffix(list[k].Image, suffix) {
					return true
				}
			}
		}
	}
	return false
}

// seconds is a number of a recording as a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
