// Package probe has what the kinds of probes share: their results and the
// ports that they are pointed at. Each kind is a package below it. It mirrors
// upstream's pkg/probe.
package probe

import (
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Result is what one run of a probe found. Its text shows in events.
type Result string

// The results of a probe. Warning counts as success, and is told in an event.
const (
	Success Result = "success"
	Warning Result = "warning"
	Failure Result = "failure"
	Unknown Result = "unknown"
)

// ResolveContainerPort returns the port that a probe means: a number, the name
// of one of the container's ports, or a number written as text.
func ResolveContainerPort(param intstr.IntOrString, c *v1.Container) (int, error) {
	port := -1
	switch param.Type {
	case intstr.Int:
		port = param.IntValue()
	case intstr.String:
		found := false
		for i := range c.Ports {
			if c.Ports[i].Name == param.StrVal {
				port, found = int(c.Ports[i].ContainerPort), true
				break
			}
		}
		if !found {
			var err error
			if port, err = strconv.Atoi(param.StrVal); err != nil {
				return port, err
			}
		}
	default:
		return port, fmt.Errorf("intOrString had no kind: %+v", param)
	}
	if port > 0 && port < 65536 {
		return port, nil
	}
	return port, fmt.Errorf("invalid port number: %v", port)
}
