// Package admission is what admits writes beyond what an object's own fields say: it
// reads other objects. It mirrors kube-apiserver's admission plugins of v1.36, those
// that are on by default and have an effect here. A plugin is a file; plugins.go has
// them in upstream's order, chain.go is the chain that they make.
//
// Defaulting comes before Mutate and validation between Mutate and Validate, so a
// plugin sees complete objects and may leave mistakes to validation.
package admission

import (
	"fmt"
	"strings"

	nodev1 "k8s.io/api/node/v1"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"

	v1 "k8s.io/api/core/v1"

	schedulingv1 "k8s.io/api/scheduling/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Cluster is what plugins read of what is stored. Each read costs a look-up at
// most: pods are admitted by the thousand.
type Cluster interface {
	Namespace(name string) *v1.Namespace
	Node(name string) *v1.Node
	// Located reports whether there are nodes that say their zone or region.
	Located() bool
	PriorityClass(name string) *schedulingv1.PriorityClass
	PriorityClasses() []*schedulingv1.PriorityClass
	RuntimeClass(name string) *nodev1.RuntimeClass
	// Lookup returns an object, or nil.
	Lookup(k kind.Kind, namespace, name string) kind.Object
	// Each calls fn for the objects of a kind, oldest first, until it says false.
	Each(k kind.Kind, fn func(kind.Object) bool)
	Kinds() *kind.Table
	// Has reports whether there are objects of a kind.
	Has(k kind.Kind) bool
	// SetQuotaStatus stores a quota that is the stored one but for its status.
	SetQuotaStatus(q *v1.ResourceQuota)
	// GenerateName appends five characters to a prefix.
	GenerateName(prefix string) string
	// NewUID returns a new UID.
	NewUID() types.UID
}

// Name is what errors call a new object before it is validated. Upstream generates
// names right before that, so an object without one goes by its generateName
// (apiserver pkg/admission/errors.go).
func Name(obj kind.Object) string {
	if g := obj.GetGenerateName(); g != "" && strings.HasPrefix(obj.GetName(), g) {
		return g
	}
	return obj.GetName()
}

// name is what errors call the request's object.
func (r *Request) name() string {
	if r.named {
		return r.Object.GetName()
	}
	return Name(r.Object)
}

// forbidden is the error of a plugin that refuses a request.
func (r *Request) forbidden(text string) error {
	return apierrors.NewForbidden(r.Kind.GroupResource(), r.name(), fmt.Errorf("%s", text))
}

// pods is what errors about pods name.
var pods = schema.GroupResource{Resource: "pods"}

// forbidden is the error of a plugin that refuses a pod.
func forbidden(pod *v1.Pod, text string) error {
	return apierrors.NewForbidden(pods, Name(pod), fmt.Errorf("%s", text))
}
