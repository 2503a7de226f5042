package records

import (
	"errors"
	"fmt"
)

// ErrNothingThere is in the chain of the errors about a sandbox or container
// that the runtime doesn't have, or that doesn't run where it would have to.
var ErrNothingThere = errors.New("nothing there")

// nothing is an error that reads as what and is an [ErrNothingThere].
type nothing struct{ what string }

func (n *nothing) Error() string { return n.what }

// Is makes errors.Is find ErrNothingThere.
func (n *nothing) Is(target error) bool { return target == ErrNothingThere }

// FindSandbox returns the newest sandbox of a pod.
func (r *Store) FindSandbox(pod string) (*Sandbox, error) {
	for i := len(r.Sandboxes) - 1; i >= 0; i-- {
		md := r.Sandboxes[i].Metadata
		if md.Namespace+"/"+md.Name == pod {
			return r.Sandboxes[i], nil
		}
	}
	return nil, &nothing{fmt.Sprintf("node %s has no sandbox of pod %s", r.node, pod)}
}

// FindContainer returns the newest container of a name; with alive the newest
// that runs.
func (r *Store) FindContainer(pod, name string, alive bool) (*Container, error) {
	for i := len(r.Containers) - 1; i >= 0; i-- {
		c := r.Containers[i]
		md := c.Sandbox.Metadata
		if c.Config.Metadata.Name == name && (!alive || c.Alive()) && md.Namespace+"/"+md.Name == pod {
			return c, nil
		}
	}
	what := "container"
	if alive {
		what = "running container"
	}
	return nil, &nothing{fmt.Sprintf("node %s has no %s %q of pod %s", r.node, what, name, pod)}
}
