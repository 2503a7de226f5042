package cluster

import (
	"fmt"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// names are what stands for generated names: web-rs1 for the first ReplicaSet of Deployment web,
// web-rs1#2 for its second pod, in order of appearance. The recordings' README has all forms.
type names struct {
	byUID  map[types.UID]string // what stands for an object's name
	counts map[string]int       // how many of a kind an owner had
	seen   map[types.UID]int    // when a pod appeared
	// texts are the generated names with what stands for them in texts; pods the same of pods, that are
	// any of their owner's in events. prefixes are what the names of pods are generated from.
	texts     map[string]string
	pods      map[string]string
	prefixes  map[string]string
	revisions map[string]string // by what the label says: the hash, or for a StatefulSet the name
}

func newNames() *names {
	return &names{byUID: map[types.UID]string{}, counts: map[string]int{}, seen: map[types.UID]int{}, texts: map[string]string{}, pods: map[string]string{}, prefixes: map[string]string{}, revisions: map[string]string{}}
}

// see gives an object that appears its name.
func (n *names) see(obj apiserver.Object) {
	uid := obj.GetUID()
	if _, known := n.byUID[uid]; known || uid == "" {
		return
	}
	owner := metav1.GetControllerOf(obj)
	name := obj.GetName()
	if again, known := n.texts[name]; known {
		if _, pod := obj.(*v1.Pod); !pod { // made anew under a name that is a hash of what it says
			n.byUID[uid], n.prefixes[name+"-"] = again, again
			return
		}
	}
	switch o := obj.(type) {
	case *appsv1.ReplicaSet:
		if owner != nil {
			name = n.number(owner.UID, "rs", n.of(owner.UID, owner.Name)+"-rs")
		}
	case *batchv1.Job:
		if owner != nil {
			name = n.number(owner.UID, "job", n.of(owner.UID, owner.Name)+"-job")
		}
	case *appsv1.ControllerRevision:
		if owner != nil {
			rev := n.number(owner.UID, "rev", "rev")
			name = owner.Name + "-" + rev
			hash := strings.TrimPrefix(o.Name, owner.Name+"-")
			n.revisions[o.Name], n.revisions[hash] = rev, rev
		}
	case *discoveryv1.EndpointSlice:
		service := o.Labels[discoveryv1.LabelServiceName]
		name = n.number(types.UID(o.Namespace+"/"+service), "slice", service+"-slice")
	case *v1.Pod:
		n.seen[uid] = len(n.seen)
		if owner == nil || o.GenerateName == "" {
			break
		}
		of := n.of(owner.UID, owner.Name)
		if i := completionIndex(o); i != "" {
			of += "[" + i + "]"
		}
		name = n.number(owner.UID, of, of+"#")
		n.texts[o.Name], n.pods[o.Name] = name, of+"#*"
	}
	n.byUID[uid] = name
	switch obj.(type) {
	case *v1.Pod:
		return
	case *appsv1.ReplicaSet, *appsv1.DaemonSet, *batchv1.Job:
		n.prefixes[obj.GetName()+"-"] = name
	}
	if name != obj.GetName() {
		n.texts[obj.GetName()] = name
	}
}

// number is the next number of an owner's objects of a kind, behind a prefix.
func (n *names) number(owner types.UID, kind, prefix string) string {
	key := string(owner) + " " + kind
	n.counts[key]++
	return fmt.Sprintf("%s%d", prefix, n.counts[key])
}

// of is what stands for the name of an object, or the name where it isn't generated.
func (n *names) of(uid types.UID, name string) string {
	if s, ok := n.byUID[uid]; ok {
		return s
	}
	return name
}

// order is when a pod appeared among all.
func (n *names) order(uid types.UID) int { return n.seen[uid] }

// revision is what stands for a revision in the label of a pod.
func (n *names) revision(label string) string {
	if r, ok := n.revisions[label]; ok {
		return r
	}
	return label
}

// suffix is how long the random part of a generated name is.
const suffix = 5

var (
	uuid = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	// word is what may be a name.
	word = regexp.MustCompile(`[a-z0-9]+(?:[-.][a-z0-9]+)*`)
)

// text is a text with what stands for the generated names in it.
func (n *names) text(s string) string { return n.replace(s, false) }

// event is text of an event's text, which names no pod of its owner's in particular.
func (n *names) event(s string) string { return n.replace(s, true) }

func (n *names) replace(s string, events bool) string {
	if s == "" {
		return ""
	}
	s = uuid.ReplaceAllString(s, "<uid>")
	return word.ReplaceAllStringFunc(s, func(w string) string {
		if t, ok := n.pods[w]; ok && events {
			return t
		}
		if t, ok := n.texts[w]; ok {
			return t
		}
		// A pod that was refused, so that nobody saw it.
		if len(w) > suffix {
			if of, ok := n.prefixes[w[:len(w)-suffix]]; ok {
				return of + "#*"
			}
		}
		return w
	})
}
