package allocation

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
)

// containerAllocation is one container in the message of a resize's event.
type containerAllocation struct {
	Name      string                  `json:"name"`
	Resources v1.ResourceRequirements `json:"resources,omitempty"`
}

// podAllocation is the JSON in the message of a resize's event.
type podAllocation struct {
	InitContainers []containerAllocation `json:"initContainers,omitempty"`
	Containers     []containerAllocation `json:"containers,omitempty"`
	Generation     int64                 `json:"generation,omitempty"`
	Error          string                `json:"error,omitempty"`
}

// ResizeMessage is the message of an event about a resize (upstream
// pkg/kubelet/events/resize.go): what is "started", "completed", "error" or the
// reason for which it is pending.
func ResizeMessage(what string, pod *v1.Pod, generation int64, errText string) string {
	a := podAllocation{
		InitContainers: allocations(pod.Spec.InitContainers), Containers: allocations(pod.Spec.Containers),
		Generation: generation, Error: errText,
	}
	data, err := json.Marshal(a)
	if err != nil {
		return "Pod resize " + what // quantities can always be written
	}
	return "Pod resize " + what + ": " + string(data)
}

// allocations are the containers' resources as messages of events have them.
func allocations(list []v1.Container) []containerAllocation {
	var out []containerAllocation
	for i := range list {
		out = append(out, containerAllocation{Name: list[i].Name, Resources: list[i].Resources})
	}
	return out
}
