package fakecri

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Sandboxes and containers are found by their id or by the beginning of it, as
// in real runtimes; crictl prints 13 of the 64 digits. A beginning that several
// ids have is an error, and matches nothing in filters.

// idLength is that of an id; what is as long is not the beginning of one.
const idLength = 64

func (r *Runtime) lookupSandbox(id string) (*sandbox, error) {
	if s := r.sandboxByID[id]; s != nil || id == "" || len(id) >= idLength {
		return s, nil
	}
	var found *sandbox
	for _, s := range r.sandboxes {
		if !strings.HasPrefix(s.id, id) {
			continue
		}
		if found != nil {
			return nil, ambiguous(id)
		}
		found = s
	}
	return found, nil
}

func (r *Runtime) lookupContainer(id string) (*container, error) {
	if c := r.containerByID[id]; c != nil || id == "" || len(id) >= idLength {
		return c, nil
	}
	var found *container
	for _, c := range r.containers {
		if !strings.HasPrefix(c.id, id) {
			continue
		}
		if found != nil {
			return nil, ambiguous(id)
		}
		found = c
	}
	return found, nil
}

func ambiguous(id string) error {
	return status.Errorf(codes.InvalidArgument, "several ids begin with %q", id)
}

// sandboxFor is lookupSandbox for those who take an ambiguous id for an unknown one.
func (r *Runtime) sandboxFor(id string) *sandbox {
	s, _ := r.lookupSandbox(id)
	return s
}

// containerFor is lookupContainer for those who take an ambiguous id for an
// unknown one.
func (r *Runtime) containerFor(id string) *container {
	c, _ := r.lookupContainer(id)
	return c
}

// needContainer is lookupContainer where an unknown id is an error.
func (r *Runtime) needContainer(id string) (*container, error) {
	c, err := r.lookupContainer(id)
	if err == nil && c == nil {
		err = containerNotFound(id)
	}
	return c, err
}

// needSandbox is lookupSandbox where an unknown id is an error.
func (r *Runtime) needSandbox(id string) (*sandbox, error) {
	s, err := r.lookupSandbox(id)
	if err == nil && s == nil {
		err = status.Errorf(codes.NotFound, "an error occurred when try to find sandbox: not found: %q", id)
	}
	return s, err
}
