package parity

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// PluginCase is a recording of a kubelet with plugins: device plugins, CSI and DRA
// drivers, or with service accounts' tokens. runs are what was seen; only JudgePlugins
// looks at them.
type PluginCase struct {
	Name string `json:"name"`
	// Plugins are the names of the resources and drivers.
	Plugins []string `json:"plugins"`
	// Duration is how long it was watched, in seconds.
	Duration float64                             `json:"duration"`
	Config   *kubeletconfig.KubeletConfiguration `json:"config,omitempty"`
	Machine  struct {
		// NUMANodes is how many the kubelet was shown, with a CPU each; 0: it was shown
		// the machine as it was.
		NUMANodes int `json:"numaNodes"`
	} `json:"machine"`
	// Controllers are those of kube-controller-manager that ran: only attach/detach.
	Controllers []string `json:"controllers"`
	// Actions in the order of their times.
	Actions []PluginAction `json:"actions"`

	runs []object
}

// PluginAction is something done to the node, through the API, or to a plugin. Which
// fields count depends on Action, and for plugins on Op; see pluginActions.
type PluginAction struct {
	// At is in seconds after the case's start.
	At     float64 `json:"at"`
	Action string  `json:"action"`
	Op     string  `json:"op"`
	// Pod is a pod, or the name of one.
	Pod                podOrName       `json:"pod"`
	Namespace          string          `json:"namespace"`
	Name               string          `json:"name"`
	GracePeriodSeconds *int64          `json:"gracePeriodSeconds"`
	Path               string          `json:"path"`
	Object             json.RawMessage `json:"object"`
	Patch              json.RawMessage `json:"patch"`

	Resource   string            `json:"resource"`
	Devices    []scriptedDevice  `json:"devices"`
	PreStart   bool              `json:"preStart"`
	Preferred  bool              `json:"preferred"`
	Reregister bool              `json:"reregister"`
	RegVersion string            `json:"regVersion"`
	Mounts     bool              `json:"mounts"`
	CDI        bool              `json:"CDI"`
	Rules      []scriptedFailure `json:"rules"`

	scriptedCSI
	scriptedVolume
	scriptedAttacher

	// Of claims, and of DRA drivers.
	Spec       json.RawMessage                  `json:"spec"`
	OwnerPod   string                           `json:"ownerPod"`
	Allocation *resourcev1.AllocationResult     `json:"allocation"`
	Claim      string                           `json:"claim"`
	Pods       []string                         `json:"pods"`
	Claims     map[string][]scriptedClaimDevice `json:"claims"`
	HasHealth  bool                             `json:"hasHealth"`
	Health     []scriptedHealth                 `json:"health"`
}

// podOrName is a pod as it is created, or the name of one.
type podOrName struct {
	Pod  *v1.Pod
	Name string
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *podOrName) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &p.Name)
	}
	return json.Unmarshal(data, &p.Pod)
}

// IsPlugins reports whether a recording is one with plugins.
func IsPlugins(data []byte) bool {
	var head struct {
		Plugins []string `json:"plugins"`
	}
	return json.Unmarshal(data, &head) == nil && head.Plugins != nil
}

// ReadPlugins reads a recording with plugins. Its runs may be missing. Errors say where
// in the data they are, as line:column.
func ReadPlugins(data []byte) (*PluginCase, error) {
	c := &PluginCase{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, Locate(data, err)
	}
	var rest struct {
		Runs []object `json:"runs"`
	}
	if err := json.Unmarshal(data, &rest); err != nil {
		return nil, Locate(data, err)
	}
	c.runs = rest.Runs
	switch {
	case c.Name == "" || strings.ContainsAny(c.Name, "/\\") || c.Name == "." || c.Name == "..":
		return nil, Locate(data, fmt.Errorf("name: %q cannot be a file's name", c.Name))
	case c.Duration <= 0:
		return nil, Locate(data, errors.New("duration: required"))
	}
	for i, name := range c.Controllers {
		if name != attachDetach {
			return nil, Locate(data, fmt.Errorf("controllers[%d]: %q is none that recordings have", i, name))
		}
	}
	for i := range c.Actions {
		if err := c.Actions[i].check(); err != nil {
			return nil, Locate(data, fmt.Errorf("actions[%d]: %w", i, err))
		}
	}
	return c, nil
}

// check tells what is wrong with an action.
func (a *PluginAction) check() error {
	_, known := pluginActions[a.word()]
	switch {
	case a.Action == "":
		return errors.New("action: required")
	case !known && a.Action == "plugin":
		return fmt.Errorf("op: %q is none that recordings have", a.Op)
	case !known:
		return fmt.Errorf("action: %q is none that recordings have", a.Action)
	case a.At < 0:
		return errors.New("at: is negative")
	case a.Action == "create" && a.Pod.Pod == nil:
		return errors.New("create: pod: required")
	}
	return nil
}

// word is what the action is called in pluginActions.
func (a *PluginAction) word() string {
	if a.Action == "plugin" {
		return a.Op
	}
	return a.Action
}

// Compared reports whether the case has runs to compare with.
func (c *PluginCase) Compared() bool { return len(c.runs) > 0 }

// pods are the names of the pods that are created.
func (c *PluginCase) pods() []string {
	var out []string
	for i := range c.Actions {
		if p := c.Actions[i].Pod.Pod; p != nil {
			out = append(out, cmp.Or(p.Namespace, v1.NamespaceDefault)+"/"+p.Name)
		}
	}
	return out
}

func (c *PluginCase) watched() time.Duration { return seconds(c.Duration) }
