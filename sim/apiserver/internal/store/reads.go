package store

import (
	"fmt"
	"sort"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/table"
)

// Objects returns the objects of a kind of type T, oldest first. The slice is
// good until the next write. It panics when T is not the kind's type.
func Objects[T table.Pointer](s *Store, k kind.Kind) []T {
	return tableOf[T](s.State, k).View()
}

// Pods returns all pods, oldest first. The slice is good until the next write.
func (s *State) Pods() []*v1.Pod { return s.pods.View() }

// PodsOnNode returns the pods with that spec.nodeName in the order in which
// they came to it. The slice is good until the next write.
func (s *State) PodsOnNode(node string) []*v1.Pod { return s.podsByNode[node] }

// PodsInNamespace returns the namespace's pods, oldest first. The slice is
// good until the next write to any pod.
func (s *State) PodsInNamespace(namespace string) []*v1.Pod {
	c := s.nsPods[namespace]
	if c == nil {
		c = &namespacePods{}
		s.nsPods[namespace] = c
	} else if c.version == s.podVersion {
		return c.pods
	}
	c.version = s.podVersion
	c.pods = c.pods[:0]
	for _, p := range s.pods.View() {
		if p.Namespace == namespace {
			c.pods = append(c.pods, p)
		}
	}
	return c.pods
}

// Nodes returns all nodes, oldest first. The slice is good until the next write.
func (s *State) Nodes() []*v1.Node { return s.nodes.View() }

// Leases returns all leases, oldest first. The slice is good until the next write.
func (s *Store) Leases() []*coordinationv1.Lease { return s.leases.view() }

// Events returns all events, oldest first. The slice is good until the next
// write. From the first call on the store keeps the events at full size.
func (s *Store) Events() []*v1.Event { return s.events.view() }

// Pod returns a pod, or nil.
func (s *State) Pod(namespace, name string) *v1.Pod {
	p, _ := s.pods.Get(namespace, name)
	return p
}

// Node returns a node, or nil.
func (s *State) Node(name string) *v1.Node {
	n, _ := s.nodes.Get("", name)
	return n
}

// Namespace returns a namespace, or nil.
func (s *State) Namespace(name string) *v1.Namespace {
	ns, _ := s.namespaces.Get("", name)
	return ns
}

// PriorityClass returns a priority class, or nil.
func (s *State) PriorityClass(name string) *schedulingv1.PriorityClass {
	pc, _ := s.priorityClasses.Get("", name)
	return pc
}

// PriorityClasses returns all priority classes, oldest first.
func (s *State) PriorityClasses() []*schedulingv1.PriorityClass { return s.priorityClasses.View() }

// RuntimeClass returns a runtime class, or nil.
func (s *State) RuntimeClass(name string) *nodev1.RuntimeClass {
	rc, _ := s.runtimeClasses.Get("", name)
	return rc
}

// Lookup returns an object, or nil.
func (s *State) Lookup(k kind.Kind, namespace, name string) kind.Object {
	on := s.shelf(k)
	if on == nil {
		return nil
	}
	if !on.Namespaced {
		namespace = ""
	}
	return on.objects.Find(namespace, name)
}

// Get returns an object, or a NotFound error.
func (s *State) Get(k kind.Kind, namespace, name string) (kind.Object, error) {
	on := s.shelf(k)
	if on == nil {
		return nil, errNoKind(k)
	}
	if o := s.Lookup(k, namespace, name); o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(on.GroupResource(), name)
}

// Each calls fn for the objects of a kind, oldest first, until it says false. fn must
// not write.
func (s *State) Each(k kind.Kind, fn func(kind.Object) bool) {
	if on := s.shelf(k); on != nil {
		on.objects.Each(fn)
	}
}

// Has reports whether there are objects of a kind.
func (s *State) Has(k kind.Kind) bool {
	on := s.shelf(k)
	return on != nil && on.objects.Len() > 0
}

// List returns the objects of a kind in a namespace ("" for all), sorted by
// namespace and name as the API lists them.
func (s *State) List(k kind.Kind, namespace string) ([]kind.Object, error) {
	on := s.shelf(k)
	if on == nil {
		return nil, errNoKind(k)
	}
	var out []kind.Object
	on.objects.Each(func(o kind.Object) bool {
		if namespace == "" || o.GetNamespace() == namespace {
			out = append(out, o)
		}
		return true
	})
	sort.Slice(out, func(i, j int) bool {
		if a, b := out[i].GetNamespace(), out[j].GetNamespace(); a != b {
			return a < b
		}
		return out[i].GetName() < out[j].GetName()
	})
	return out, nil
}

// ListPodsOnNode returns what a kubelet's list shows: its pods by namespace and name.
func (s *State) ListPodsOnNode(node string) []*v1.Pod {
	out := append([]*v1.Pod(nil), s.podsByNode[node]...)
	sort.Slice(out, func(i, j int) bool {
		if out[i].Namespace != out[j].Namespace {
			return out[i].Namespace < out[j].Namespace
		}
		return out[i].Name < out[j].Name
	})
	return out
}

// errNoKind is the answer about a kind that is not in the table.
func errNoKind(k kind.Kind) error {
	return apierrors.NewBadRequest(fmt.Sprintf("no kind %q is served", string(k)))
}
