package status

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// LogContainer returns the API's ID of the container whose log is to be shown, by a
// pod's status: the present one, or else the last that ran. The error is for whoever
// asks (upstream validateContainerLogStatus).
func LogContainer(pod string, s *v1.PodStatus, name string, previous bool) (string, error) {
	c := findStatus(s.ContainerStatuses, name)
	if c == nil {
		c = findStatus(s.InitContainerStatuses, name)
	}
	if c == nil {
		c = findStatus(s.EphemeralContainerStatuses, name)
	}
	if c == nil {
		return "", fmt.Errorf("container %q in pod %q is not available", name, pod)
	}
	last := ""
	if t := c.LastTerminationState.Terminated; t != nil {
		last = t.ContainerID
	}
	if previous {
		if last == "" {
			return "", fmt.Errorf("previous terminated container %q in pod %q not found", name, pod)
		}
		return last, nil
	}
	switch {
	case c.State.Running != nil:
		return c.ContainerID, nil
	case c.State.Terminated != nil && c.State.Terminated.ContainerID != "":
		return c.State.Terminated.ContainerID, nil
	case last != "":
		return last, nil
	case c.State.Terminated != nil || c.LastTerminationState.Terminated != nil:
		return "", fmt.Errorf("container %q in pod %q is terminated", name, pod)
	case c.State.Waiting == nil:
		return "", fmt.Errorf("container %q in pod %q is waiting to start - no logs yet", name, pod)
	}
	reason := c.State.Waiting.Reason
	switch reason {
	case "ErrImagePull":
		reason = "image can't be pulled"
	case "ImagePullBackOff":
		reason = "trying and failing to pull image"
	}
	return "", fmt.Errorf("container %q in pod %q is waiting to start: %v", name, pod, reason)
}
