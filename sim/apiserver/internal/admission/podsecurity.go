package admission

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// podSecurity is the plugin PodSecurity (k8s.io/pod-security-admission, whose checks it
// runs): the labels of a namespace say what its pods may do. Without labels they may do
// all.
type podSecurity struct {
	cluster Cluster
	checks  policy.Evaluator // nil before a namespace asks for checks
}

// maxPodsChecked is how many pods of a namespace are looked at when it asks for more
// than before.
const maxPodsChecked = 3000

func (s *podSecurity) evaluate(lv psa.LevelVersion, meta *metav1.ObjectMeta, spec *v1.PodSpec) policy.AggregateCheckResult {
	if s.checks == nil {
		checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
		if err != nil {
			panic(err) // the library's own checks
		}
		s.checks = checks
	}
	return policy.AggregateCheckResults(s.checks.EvaluatePod(lv, meta, spec))
}

// policyOf is what a namespace asks for.
func policyOf(ns *v1.Namespace) (psa.Policy, error) {
	all := psa.LevelVersion{Level: psa.LevelPrivileged, Version: psa.LatestVersion()}
	var labels map[string]string
	if ns != nil {
		labels = ns.Labels
	}
	p, errs := psa.PolicyToEvaluate(labels, psa.Policy{Enforce: all, Audit: all, Warn: all})
	return p, errs.ToAggregate()
}

// validatePod holds a pod against its namespace's labels.
func (s *podSecurity) validatePod(r *Request) error {
	p, err := policyOf(s.cluster.Namespace(r.Namespace))
	if err == nil && p.FullyPrivileged() {
		return nil
	}
	pod := r.Object.(*v1.Pod)
	if old, ok := r.Old.(*v1.Pod); ok && !newImages(pod, old) {
		return nil
	}
	r.Audit("pod-security.kubernetes.io/"+psa.EnforcedPolicyAnnotationKey, p.Enforce.String())
	if result := s.evaluate(p.Enforce, &pod.ObjectMeta, &pod.Spec); !result.Allowed {
		s.audit(r, p, err, &pod.ObjectMeta, &pod.Spec)
		return r.forbidden(fmt.Sprintf("violates PodSecurity %q: %s", p.Enforce.String(), result.ForbiddenDetail()))
	}
	s.audit(r, p, err, &pod.ObjectMeta, &pod.Spec)
	s.warn(r, p, &pod.ObjectMeta, &pod.Spec)
	return nil
}

// validateTemplate says what pods of a template would be held against: the template
// itself is let through.
func (s *podSecurity) validateTemplate(r *Request) error {
	p, err := policyOf(s.cluster.Namespace(r.Namespace))
	if err == nil && p.Warn.Level == psa.LevelPrivileged && p.Audit.Level == psa.LevelPrivileged {
		return nil
	}
	if t := templateOf(r.Object); t != nil {
		s.audit(r, p, err, &t.ObjectMeta, &t.Spec)
		s.warn(r, p, &t.ObjectMeta, &t.Spec)
	}
	return nil
}

func (s *podSecurity) audit(r *Request, p psa.Policy, wrong error, meta *metav1.ObjectMeta, spec *v1.PodSpec) {
	if r.Caller == nil || r.Caller.Audit == nil {
		return
	}
	if wrong != nil {
		r.Audit("pod-security.kubernetes.io/error", fmt.Sprintf("Failed to parse policy: %v", wrong))
	}
	if result := s.evaluate(p.Audit, meta, spec); !result.Allowed {
		r.Audit("pod-security.kubernetes.io/"+psa.AuditViolationsAnnotationKey, fmt.Sprintf("would violate PodSecurity %q: %s", p.Audit.String(), result.ForbiddenDetail()))
	}
}

func (s *podSecurity) warn(r *Request, p psa.Policy, meta *metav1.ObjectMeta, spec *v1.PodSpec) {
	if result := s.evaluate(p.Warn, meta, spec); !result.Allowed {
		r.Warn(fmt.Sprintf("would violate PodSecurity %q: %s", p.Warn.String(), result.ForbiddenDetail()))
	}
}

// validateNamespace checks the labels, and tells which pods would be refused by new ones.
func (s *podSecurity) validateNamespace(r *Request) error {
	ns := r.Object.(*v1.Namespace)
	none := psa.LevelVersion{Level: psa.LevelPrivileged, Version: psa.LatestVersion()}
	defaults := psa.Policy{Enforce: none, Audit: none, Warn: none}
	p, errs := psa.PolicyToEvaluate(ns.Labels, defaults)
	old, _ := r.Old.(*v1.Namespace)
	if old == nil {
		if len(errs) > 0 {
			return apierrors.NewInvalid(r.Kind.GroupKind(), ns.Name, errs)
		}
		return nil
	}
	was, wrong := psa.PolicyToEvaluate(old.Labels, defaults)
	switch {
	case len(errs) > 0 && !reflect.DeepEqual(errs, wrong):
		return apierrors.NewInvalid(r.Kind.GroupKind(), ns.Name, errs)
	case p.Enforce == was.Enforce, p.Enforce.Level == psa.LevelPrivileged,
		p.Enforce.Version == was.Enforce.Version && psa.CompareLevels(p.Enforce.Level, was.Enforce.Level) < 1:
		return nil
	}
	for _, text := range s.violations(ns.Name, p.Enforce) {
		r.Warn(text)
	}
	return nil
}

// violations says which pods of a namespace a level would refuse, one of each
// controller's first.
func (s *podSecurity) violations(namespace string, level psa.LevelVersion) []string {
	var list, more []*v1.Pod
	seen := map[types.UID]bool{}
	s.cluster.Each(kinds.Pod, func(o kind.Object) bool {
		if o.GetNamespace() != namespace {
			return true
		}
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil && seen[owner.UID] {
			more = append(more, o.(*v1.Pod))
			return true
		} else if owner != nil {
			seen[owner.UID] = true
		}
		list = append(list, o.(*v1.Pod))
		return true
	})
	list = append(list, more...)
	total := len(list)
	list = list[:min(total, maxPodsChecked)]
	type found struct {
		text, first string
		pods        int
	}
	var all []*found
	for _, pod := range list {
		result := s.evaluate(level, &pod.ObjectMeta, &pod.Spec)
		if result.Allowed {
			continue
		}
		text := result.ForbiddenReason()
		i := slices.IndexFunc(all, func(f *found) bool { return f.text == text })
		if i < 0 {
			i = len(all)
			all = append(all, &found{text: text, first: pod.Name})
		}
		all[i].pods++
		all[i].first = min(all[i].first, pod.Name)
	}
	var out, each []string
	if len(list) < total {
		out = append(out, fmt.Sprintf("new PodSecurity enforce level only checked against the first %d of %d existing pods", len(list), total))
	}
	if len(all) > 0 {
		out = append(out, fmt.Sprintf("existing pods in namespace %q violate the new PodSecurity enforce level %q", namespace, level.String()))
	}
	for _, f := range all {
		others := ""
		switch {
		case f.pods == 2:
			others = " (and 1 other pod)"
		case f.pods > 2:
			others = fmt.Sprintf(" (and %d other pods)", f.pods-1)
		}
		each = append(each, f.first+others+": "+f.text)
	}
	slices.SortFunc(each, strings.Compare)
	return append(out, each...)
}

// newImages reports whether an update changes what runs.
func newImages(pod, old *v1.Pod) bool {
	images := func(p *v1.Pod) (out []string) {
		for _, c := range p.Spec.InitContainers {
			out = append(out, "init", c.Image)
		}
		for _, c := range p.Spec.Containers {
			out = append(out, "main", c.Image)
		}
		return out
	}
	if !slices.Equal(images(pod), images(old)) {
		return true
	}
	return slices.ContainsFunc(pod.Spec.EphemeralContainers, func(c v1.EphemeralContainer) bool {
		return !slices.ContainsFunc(old.Spec.EphemeralContainers, func(o v1.EphemeralContainer) bool { return o.Name == c.Name && o.Image == c.Image })
	})
}

// templateOf returns the template of the pods that an object makes, or nil.
func templateOf(obj kind.Object) *v1.PodTemplateSpec {
	switch o := obj.(type) {
	case *v1.PodTemplate:
		return &o.Template
	case *v1.ReplicationController:
		return o.Spec.Template
	case *appsv1.ReplicaSet:
		return &o.Spec.Template
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	case *batchv1.Job:
		return &o.Spec.Template
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template
	}
	return nil
}

// plugins are the plugin's links: what is about pods, and what is about others.
func (s *podSecurity) plugins(write []admissionv1.Operation) []*Plugin {
	return []*Plugin{
		{Name: "PodSecurity", Kinds: []kind.Kind{kinds.Pod}, Operations: write, Subresources: []string{"", "ephemeralcontainers", "resize"}, Validate: s.validatePod},
		{Name: "PodSecurity", Kinds: []kind.Kind{kinds.Namespace}, Operations: write, Validate: s.validateNamespace},
		{Name: "PodSecurity", Operations: write, Validate: s.validateTemplate, Kinds: []kind.Kind{
			kinds.Deployment, kinds.ReplicaSet, kinds.StatefulSet, kinds.DaemonSet, kinds.Job, kinds.CronJob, "ReplicationController", "PodTemplate",
		}},
	}
}
