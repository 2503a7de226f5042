package endpointslice

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// service is what is known of one that has a selector. It lives as long as the service selects by
// the same labels.
type service struct {
	key      controller.Key
	selector labels.Selector
	// pods: the names of those that the selector takes.
	pods     map[string]struct{}
	triggers triggers
	hints    hinted
}

// labelKey is the one requirement of a selector by which it is found.
type labelKey struct{ namespace, key, value string }

// index finds the services of a pod and the slices of a service. A pod has a few
// labels and a cluster thousands of services: each service stands under one of
// its selector's labels, so a pod's change looks at those under its own labels
// only. It is kept from changes, within the writes, so a sync never sees an index older than the
// store. found is scratch memory of of().
type index struct {
	services map[controller.Key]*service
	byLabel  map[labelKey][]*service
	slices   map[controller.Key][]string
	found    []*service
}

// newIndex returns an empty index.
func newIndex() index {
	return index{services: map[controller.Key]*service{}, byLabel: map[labelKey][]*service{}, slices: map[controller.Key][]string{}}
}

// anchor returns the least of a selector's labels. Any of the labels would do; the least is the
// same in each run.
func anchor(namespace string, selector map[string]string) labelKey {
	k := labelKey{namespace: namespace}
	for key, value := range selector { //drydock:unordered takes the least
		if k.key == "" || key < k.key {
			k.key, k.value = key, value
		}
	}
	return k
}

// selects reports whether pods can be endpoints of a service by a selector. A service without a
// selector has endpoints that somebody else writes; ExternalName is a DNS alias.
func selects(svc *v1.Service) bool {
	return svc != nil && len(svc.Spec.Selector) > 0 && svc.Spec.Type != v1.ServiceTypeExternalName
}

// put takes a service in, with the namespace's pods. was is what drop returned of
// it, or nil. It costs a walk over the namespace's pods, once per service and selector.
func (x *index) put(svc *v1.Service, pods []*v1.Pod, was *service) {
	s := &service{key: controller.KeyOf(svc), selector: labels.SelectorFromSet(svc.Spec.Selector), pods: map[string]struct{}{}}
	if was != nil {
		s.triggers, s.hints = was.triggers, was.hints
	}
	x.services[s.key] = s
	a := anchor(svc.Namespace, svc.Spec.Selector)
	x.byLabel[a] = append(x.byLabel[a], s)
	for _, pod := range pods {
		if s.selector.Matches(labels.Set(pod.Labels)) {
			s.pods[pod.Name] = struct{}{}
		}
	}
}

// drop forgets a service and returns what was known of it; svc is its last version
// that was put.
func (x *index) drop(svc *v1.Service) *service {
	key := controller.KeyOf(svc)
	was := x.services[key]
	a := anchor(svc.Namespace, svc.Spec.Selector)
	rest := slices.DeleteFunc(x.byLabel[a], func(s *service) bool { return s.key == key })
	if len(rest) == 0 {
		delete(x.byLabel, a)
	} else {
		x.byLabel[a] = rest
	}
	delete(x.services, key)
	return was
}

// of returns the services whose selector takes a pod, by name. The slice is good
// until the next call. A service is found once, since it stands under one label only.
func (x *index) of(pod *v1.Pod) []*service {
	x.found = x.found[:0]
	for k, v := range pod.Labels { //drydock:unordered sorted below
		for _, s := range x.byLabel[labelKey{pod.Namespace, k, v}] {
			if s.selector.Matches(labels.Set(pod.Labels)) {
				x.found = append(x.found, s)
			}
		}
	}
	if len(x.found) > 1 {
		slices.SortFunc(x.found, func(a, b *service) int { return strings.Compare(a.key.Name, b.key.Name) })
	}
	return x.found
}

// serviceOf returns the service that a slice is of; false when this controller
// does not manage it. Slices of others, made by hand or by the mirroring controller, carry
// another value in managed-by.
func serviceOf(es *discoveryv1.EndpointSlice) (controller.Key, bool) {
	name := es.Labels[discoveryv1.LabelServiceName]
	return types.NamespacedName{Namespace: es.Namespace, Name: name}, name != "" && es.Labels[discoveryv1.LabelManagedBy] == managedBy
}

// addSlice and dropSlice keep the names of a service's slices, in the order in
// which they came.
func (x *index) addSlice(svc controller.Key, name string) {
	if !slices.Contains(x.slices[svc], name) {
		x.slices[svc] = append(x.slices[svc], name)
	}
}

func (x *index) dropSlice(svc controller.Key, name string) {
	rest := slices.DeleteFunc(x.slices[svc], func(n string) bool { return n == name })
	if len(rest) == 0 {
		delete(x.slices, svc)
		return
	}
	x.slices[svc] = rest
}
