package document

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// Reference is an object or a namespace that an expectation names, and where.
type Reference struct {
	expect.ObjectRef
	Pos decode.Position
}

// MissingObject is what is said of an object that an expectation names and that is never there.
func MissingObject(r Reference) string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	if r.Kind == expect.KindEventTarget {
		return fmt.Sprintf("%v: there never is anything called %q", r.Pos, name)
	}
	return fmt.Sprintf("%v: there never is a %s %q", r.Pos, r.Kind, name)
}

// IdleProgram is what is said of a program that no container takes.
func IdleProgram(pos string) string {
	return pos + ": no container takes this program: nothing matches it that no program before it matches"
}

// checkReferences tells of what a document names and what nothing in it makes, as far as that
// can be known: what is told here a run would tell at its end.
func (l *loader) checkReferences(s *Scenario) {
	made := l.made(s)
	if made == nil {
		return
	}
	for i := range s.Spec.Expect {
		for _, r := range s.Spec.Expect[i].References {
			if made.lacks(r.ObjectRef) {
				l.notices.say(MissingObject(r) + suggest.Suffix(made.written(r.ObjectRef), made.names(r.Kind)))
			}
		}
	}
	for i := range s.Spec.Programs {
		p := &s.Spec.Programs[i]
		if !slices.ContainsFunc(made.containers, func(c madeContainer) bool { return c.may(&p.Match) }) {
			l.notices.say(IdleProgram(p.Pos.String()))
		}
	}
}

// making is what comes of a document's manifests.
type making struct {
	objects    []metav1.Object
	containers []madeContainer
}

// madeContainer is a container of the pods of an object.
type madeContainer struct {
	namespace, pod, name, image string
}

// made collects what a document makes; nil if that cannot be known, because something patches
// objects or writes manifests as texts.
func (l *loader) made(s *Scenario) *making {
	for i := range s.Spec.Timeline {
		switch s.Spec.Timeline[i].Does.(type) {
		case nil, *action.Patch, *action.Rollout, *action.WriteStaticPod:
			return nil
		}
	}
	for i := range s.Spec.Nodes {
		if slices.ContainsFunc(s.Spec.Nodes[i].StaticPods, func(p value.StaticPod) bool { return len(p.Manifest.Objects) == 0 }) {
			return nil
		}
	}
	m := &making{}
	for _, o := range l.objects {
		obj, ok := o.Object.(metav1.Object)
		if !ok {
			return nil
		}
		m.objects = append(m.objects, obj)
		m.contain(obj)
	}
	return m
}

// contain notes the containers of an object's pods.
func (m *making) contain(o metav1.Object) {
	switch x := o.(type) {
	case *v1.Pod:
		// Its number or its node may be behind its name: a template's, or a static pod's.
		m.pod(o, &x.Spec)
	case *appsv1.Deployment:
		m.pod(o, &x.Spec.Template.Spec)
	case *appsv1.ReplicaSet:
		m.pod(o, &x.Spec.Template.Spec)
	case *appsv1.StatefulSet:
		m.pod(o, &x.Spec.Template.Spec)
	case *appsv1.DaemonSet:
		m.pod(o, &x.Spec.Template.Spec)
	case *batchv1.Job:
		m.pod(o, &x.Spec.Template.Spec)
	case *batchv1.CronJob:
		m.pod(o, &x.Spec.JobTemplate.Spec.Template.Spec)
	}
}

func (m *making) pod(o metav1.Object, spec *v1.PodSpec) {
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		m.containers = append(m.containers, madeContainer{namespace: namespaceOf(o), pod: o.GetName(), name: c.Name, image: c.Image})
	}
}

// may reports whether a pattern may match the container. Its image has other names, too, and
// its pod's name is known by its beginning only: patterns get the benefit of the doubt.
func (c *madeContainer) may(m *Match) bool {
	matches := func(pattern, s string) bool { return pattern == "" || value.Matches(pattern, s) }
	if !matches(m.Namespace, c.namespace) || !matches(m.Container, c.name) {
		return false
	}
	if begin, _, cut := cutWild(m.Pod); m.Pod != "" && !strings.HasPrefix(begin, c.pod) && !(cut && strings.HasPrefix(c.pod, begin)) {
		return false
	}
	image := m.Image
	return image == "" || value.Matches(image, c.image) || value.Matches(lastPart(image), lastPart(c.image)) || value.Matches(lastPart(image), lastPart(c.image)+":latest")
}

// cutWild cuts a pattern at its first wildcard.
func cutWild(pattern string) (before, after string, found bool) {
	if i := strings.IndexAny(pattern, "*?"); i >= 0 {
		return pattern[:i], pattern[i:], true
	}
	return pattern, "", false
}

// lastPart is an image's name without its registry and path.
func lastPart(image string) string { return image[strings.LastIndexByte(image, '/')+1:] }

// namespaceOf is the namespace that an object is applied to.
func namespaceOf(o metav1.Object) string {
	if ns := o.GetNamespace(); ns != "" {
		return ns
	}
	return v1.NamespaceDefault
}

// lacks reports whether nothing makes an object: the pods of a workload, and its ReplicaSets or
// Jobs, have names that begin with its own.
func (m *making) lacks(r expect.ObjectRef) bool {
	switch r.Kind {
	case expect.KindNamespace:
		return !slices.Contains(m.names(r.Kind), r.Name)
	case expect.KindPod, expect.KindDeployment, expect.KindStatefulSet, expect.KindDaemonSet, expect.KindReplicaSet, expect.KindJob, expect.KindCronJob:
		return !slices.ContainsFunc(m.objects, func(o metav1.Object) bool {
			return namespaceOf(o) == r.Namespace && (o.GetName() == r.Name || strings.HasPrefix(r.Name, o.GetName()+"-"))
		})
	}
	return false
}

// names are those that may have been meant, as expressions have them.
func (m *making) names(k expect.Kind) []string {
	if k != expect.KindNamespace {
		var out []string
		for _, o := range m.objects {
			out = append(out, namespaceOf(o)+"/"+o.GetName())
		}
		return out
	}
	out := []string{v1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, v1.NamespaceNodeLease}
	for _, o := range m.objects {
		out = append(out, namespaceOf(o))
		if _, ok := o.(*v1.Namespace); ok {
			out = append(out, o.GetName())
		}
	}
	return out
}

// written is an object's name as an expression has it.
func (m *making) written(r expect.ObjectRef) string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}
