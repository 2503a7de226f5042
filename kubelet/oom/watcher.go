package oom

import "strconv"

// root is the cgroup of the machine itself.
const root = "/"

// EventMessage is the message of the node's event SystemOOM about a kill. false:
// a cgroup's limit was passed, which is its container's affair and no event.
// (upstream pkg/kubelet/oom/oom_watcher_linux.go, Start)
func EventMessage(k Kill) (string, bool) {
	if k.Container != root {
		return "", false
	}
	msg := "System OOM encountered"
	if k.Process != "" && k.PID != 0 {
		msg += ", victim process: " + k.Process + ", pid: " + strconv.Itoa(k.PID)
	}
	return msg, true
}
