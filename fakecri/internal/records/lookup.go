package records

import (
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Sandboxes and containers are found by their id or by the beginning of it, as
// in real runtimes; crictl prints 13 of the 64 digits. A beginning that several
// ids have is an error, and matches nothing in filters.

// idLength is that of an id; what is as long is not the beginning of one.
const idLength = 64

// byID holds records in the order of their ids. A node has some hundred at
// most: this finds them as fast as a map would, in an eighth of the memory.
type byID[T identified] []T

// identified is a record with an id.
type identified interface {
	comparable
	recordID() string
}

func (s *Sandbox) recordID() string { return s.ID }

func (c *Container) recordID() string { return c.ID }

// from returns the place of the first record whose id is not before id.
func (b byID[T]) from(id string) int {
	i, _ := slices.BinarySearchFunc(b, id, func(v T, id string) int { return strings.Compare(v.recordID(), id) })
	return i
}

// find returns the record whose id is id or begins with it, zero if there is none.
func (b byID[T]) find(id string) (found T, err error) {
	i := b.from(id)
	if id == "" || i == len(b) || !strings.HasPrefix(b[i].recordID(), id) {
		return found, nil
	}
	if len(id) < idLength && b[i].recordID() != id && i+1 < len(b) && strings.HasPrefix(b[i+1].recordID(), id) {
		return found, ambiguous(id)
	}
	return b[i], nil
}

// Add keeps the order.
func (b *byID[T]) Add(v T) { *b = slices.Insert(*b, b.from(v.recordID()), v) }

// Drop forgets a record; one that is not there is no error.
func (b *byID[T]) Drop(v T) {
	if i := b.from(v.recordID()); i < len(*b) && (*b)[i] == v {
		*b = slices.Delete(*b, i, i+1)
	}
}

// LookupSandbox finds a sandbox, nil if there is none.
func (r *Store) LookupSandbox(id string) (*Sandbox, error) { return r.SandboxByID.find(id) }

// LookupContainer finds a container, nil if there is none.
func (r *Store) LookupContainer(id string) (*Container, error) { return r.ContainerByID.find(id) }

// ambiguous is containerd's error for a beginning that several ids have.
func ambiguous(id string) error {
	return status.Errorf(codes.InvalidArgument, "several ids begin with %q", id)
}

// SandboxFor is lookupSandbox for those who take an ambiguous id for an unknown one.
func (r *Store) SandboxFor(id string) *Sandbox {
	s, _ := r.LookupSandbox(id)
	return s
}

// ContainerFor is lookupContainer for those who take an ambiguous id for an
// unknown one.
func (r *Store) ContainerFor(id string) *Container {
	c, _ := r.LookupContainer(id)
	return c
}

// NeedContainer is lookupContainer where an unknown id is an error.
func (r *Store) NeedContainer(id string) (*Container, error) {
	c, err := r.LookupContainer(id)
	if err == nil && c == nil {
		err = ContainerNotFound(id)
	}
	return c, err
}

// NeedSandbox is lookupSandbox where an unknown id is an error.
func (r *Store) NeedSandbox(id string) (*Sandbox, error) {
	s, err := r.LookupSandbox(id)
	if err == nil && s == nil {
		err = status.Errorf(codes.NotFound, "an error occurred when try to find sandbox: not found: %q", id)
	}
	return s, err
}
