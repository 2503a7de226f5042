package store

import (
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// Template is a pod that was defaulted, admitted and validated once, to be
// stamped many times. The pods stamped share everything below their structs.
type Template struct {
	pod *v1.Pod
	// keys are the labels that complete its selectors; spread and affinity are
	// those before that. Only pods with other values don't share the result.
	keys     []string
	spread   []v1.TopologySpreadConstraint
	affinity *v1.Affinity
	classes  uint64 // Store.classes that admission read
}

// Pod returns the template's pod as it will be stamped. It is shared.
func (t *Template) Pod() *v1.Pod { return t.pod }

// Stamp says how one pod differs from its template.
type Stamp struct {
	// Name is the pod's name. "" generates one from the template's
	// generateName, or from its name and a dash.
	Name string
	// GenerateName, when not "", replaces the template's. A Name wins.
	GenerateName string
	// Namespace, when not "", replaces the template's.
	Namespace string
	// NodeName, when not "", replaces the template's spec.nodeName.
	NodeName string
	// Labels, when not nil, replaces the template's. It is shared.
	Labels map[string]string
	// Hostname and Affinity, when not empty, replace the template's.
	Hostname string
	Affinity *v1.Affinity
	// Annotations, when not nil, replaces the template's. It is shared.
	Annotations map[string]string
	// OwnerReferences, when not nil, replaces the template's. It is shared.
	OwnerReferences []metav1.OwnerReference
}

// Stale reports whether a class has changed since the template was admitted, so
// that a new one may turn out otherwise: another priority, say, or refused.
func (s *Store) Stale(t *Template) bool { return t.classes != s.classes }

// NewTemplate defaults, admits and validates a copy of pod. Errors are those
// of Create; a Name beside a GenerateName is for them alone.
func (s *Store) NewTemplate(pod *v1.Pod) (*Template, error) {
	in := s.info(kinds.Pod)
	c := pod.DeepCopy()
	prefix := c.GenerateName
	if c.Name == "" && prefix == "" {
		return nil, apierrors.NewInvalid(in.GroupKind(), "", field.ErrorList{field.Required(field.NewPath("metadata", "name"), "name or generateName is required")})
	}
	if c.Name == "" {
		c.Name = s.refusedName(prefix)
	} else {
		c.GenerateName = ""
	}
	if prefix == "" {
		prefix = c.Name + "-"
	}
	if err := s.prepareCreate(c, in); err != nil {
		return nil, err
	}
	t := &Template{pod: c, keys: podspec.NamedLabelKeys(&c.Spec), spread: c.Spec.TopologySpreadConstraints, affinity: c.Spec.Affinity, classes: s.classes}
	if err := s.admitNew(time.Time{}, c, in, s.plugins.TemplateChain(kinds.Pod), false); err != nil {
		return nil, err
	}
	c.Name = ""
	c.GenerateName = prefix
	return t, nil
}

// remerges reports whether a pod's labels complete selectors differently from the
// template's.
func (t *Template) remerges(pod *v1.Pod, st Stamp) bool {
	return len(t.keys) > 0 && (st.Affinity != nil || slices.ContainsFunc(t.keys, func(k string) bool {
		was, had := t.pod.Labels[k]
		is, has := pod.Labels[k]
		return was != is || had != has
	}))
}

// CreateFromTemplate stores a pod that shares its template's spec. Errors:
// NotFound (namespace), Forbidden (namespace is terminating), Invalid (name),
// AlreadyExists.
func (s *Store) CreateFromTemplate(now time.Time, t *Template, st Stamp) (*v1.Pod, error) {
	in := s.info(kinds.Pod)
	c := *t.pod
	c.Name = st.Name
	if st.GenerateName != "" {
		c.GenerateName = st.GenerateName
	}
	if st.Name != "" {
		c.GenerateName = ""
	}
	if st.Namespace != "" {
		c.Namespace = st.Namespace
	}
	if st.NodeName != "" {
		c.Spec.NodeName = st.NodeName
	}
	if st.Hostname != "" {
		c.Spec.Hostname = st.Hostname
	}
	if st.Affinity != nil {
		c.Spec.Affinity = st.Affinity
	}
	if st.Labels != nil {
		c.Labels = st.Labels
	}
	// What the template shares was completed by its own labels; these are made from
	// before that.
	if t.remerges(&c, st) {
		c.Spec.TopologySpreadConstraints = t.spread
		if st.Affinity == nil {
			c.Spec.Affinity = t.affinity
		}
		podspec.MergeLabelKeys(&c)
	}
	if st.Annotations != nil {
		c.Annotations = st.Annotations
	}
	if st.OwnerReferences != nil {
		c.OwnerReferences = st.OwnerReferences
	}
	c.Labels = s.plugins.WithTopology(c.Labels, c.Spec.NodeName)
	if err := s.prepareCreate(&c, in); err != nil {
		return nil, err
	}
	for _, msg := range in.ValidateName(c.Name) {
		return nil, apierrors.NewInvalid(in.GroupKind(), c.Name, field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), c.Name, msg)})
	}
	if s.Pod(c.Namespace, c.Name) != nil {
		return nil, apierrors.NewAlreadyExists(in.GroupResource(), c.Name)
	}
	pod := &c
	if chain := s.plugins.StampedChain(kinds.Pod); !chain.Idle() {
		pod = c.DeepCopy() // what a plugin writes to must not be the template's
		r := s.request(now, admissionv1.Create, in, pod, nil, "")
		if err := chain.Mutate(r); err != nil {
			return nil, err
		}
		if err := chain.Validate(r); err != nil {
			return nil, err
		}
	}
	s.stampMeta(now, pod, in)
	s.commit(watch.Added, kinds.Pod, nil, pod, "create", "")
	return pod, nil
}
