package sim

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Workload is whose replicas pods are: the outermost owner that says how many it wants, or
// the pods themselves.
type Workload struct {
	// Kind is Deployment, ReplicaSet, StatefulSet, DaemonSet or Job; Pod for all pods of one name
	// that none of these owns.
	Kind string
	// Name is namespace/name.
	Name string
}

// String is "Deployment default/web"; "" of nobody.
func (w Workload) String() string {
	if w == (Workload{}) {
		return ""
	}
	return w.Kind + " " + w.Name
}

// Availability is how long replicas of a workload were wanted and how long of that as many
// were ready, in replica times time. A Deployment, a ReplicaSet and a StatefulSet want what their spec
// says, a DaemonSet what its status says, a Job its parallelism until its completions are
// there; who is to be deleted wants none. A pod by itself is wanted from its creation until
// it is to be deleted, is gone, has succeeded, or the run ends: one that failed or was evicted
// is still wanted.
type Availability struct {
	Workload
	// QoS is the class of the last of its pods.
	QoS          v1.PodQOSClass
	Ready, Asked time.Duration
}

// replicas counts what a workload wants and has.
type replicas struct {
	Availability
	wanted, ready int64
	since         time.Duration // until which Ready and Asked are
}

// advance counts the time up to at.
func (r *replicas) advance(at time.Duration) {
	d := at - r.since
	r.Asked += d * time.Duration(r.wanted)
	r.Ready += d * time.Duration(min(r.ready, r.wanted))
	r.since = at
}

// workloads are those of a cluster.
type workloads struct {
	all map[Workload]*replicas
	// owners has, of a ReplicaSet that a Deployment owns, that; of has the workload of a pod
	// that has one, by namespace/name.
	owners map[string]Workload
	of     map[string]Workload
}

func newWorkloads() *workloads {
	return &workloads{all: map[Workload]*replicas{}, owners: map[string]Workload{}, of: map[string]Workload{}}
}

// get returns a workload's count, which begins at a time.
func (ws *workloads) get(w Workload, at time.Duration) *replicas {
	r := ws.all[w]
	if r == nil {
		r = &replicas{Availability: Availability{Workload: w}, since: at}
		ws.all[w] = r
	}
	return r
}

// change takes a write of an object that wants replicas.
func (ws *workloads) change(o apiserver.Object, gone bool, at time.Duration) {
	kind, wanted := "", int64(0)
	switch x := o.(type) {
	case *appsv1.Deployment:
		kind, wanted = "Deployment", int64(ptr.Deref(x.Spec.Replicas, 1))
	case *appsv1.ReplicaSet:
		kind, wanted = "ReplicaSet", int64(ptr.Deref(x.Spec.Replicas, 1))
		if owner := metav1.GetControllerOfNoCopy(x); owner != nil {
			if owner.Kind == "Deployment" {
				ws.owners[x.Namespace+"/"+x.Name] = Workload{owner.Kind, x.Namespace + "/" + owner.Name}
			}
			return
		}
	case *appsv1.StatefulSet:
		kind, wanted = "StatefulSet", int64(ptr.Deref(x.Spec.Replicas, 1))
	case *appsv1.DaemonSet:
		kind, wanted = "DaemonSet", int64(x.Status.DesiredNumberScheduled)
	case *batchv1.Job:
		kind, wanted = "Job", jobWants(x)
	default:
		return
	}
	if gone || o.GetDeletionTimestamp() != nil {
		wanted = 0
	}
	r := ws.get(Workload{kind, o.GetNamespace() + "/" + o.GetName()}, at)
	if r.wanted != wanted {
		r.advance(at)
		r.wanted = wanted
	}
}

// jobWants is how many pods a Job wants to run now.
func jobWants(j *batchv1.Job) int64 {
	if ptr.Deref(j.Spec.Suspend, false) || j.Status.CompletionTime != nil {
		return 0
	}
	for i := range j.Status.Conditions {
		if c := &j.Status.Conditions[i]; (c.Type == batchv1.JobFailed || c.Type == batchv1.JobComplete) && c.Status == v1.ConditionTrue {
			return 0
		}
	}
	wanted := ptr.Deref(j.Spec.Parallelism, 1)
	if j.Spec.Completions != nil {
		wanted = min(wanted, *j.Spec.Completions-j.Status.Succeeded)
	} else if j.Status.Succeeded > 0 {
		wanted = 0 // a work queue that is done: nobody begins anew
	}
	return int64(max(wanted, 0))
}

// ofPod returns the count of a new pod's workload; nil if nothing that wants replicas owns it.
func (ws *workloads) ofPod(p *v1.Pod, at time.Duration) *replicas {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil {
		return nil
	}
	w := Workload{owner.Kind, p.Namespace + "/" + owner.Name}
	switch owner.Kind {
	case "ReplicaSet":
		if of, ok := ws.owners[w.Name]; ok {
			w = of
		}
	case "StatefulSet", "DaemonSet", "Job":
	default:
		return nil
	}
	ws.of[podName(p)] = w
	r := ws.get(w, at)
	r.QoS = classOf(p)
	return r
}

// setReady counts a replica that has become ready, or is no more.
func (r *replicas) setReady(ready bool, at time.Duration) {
	r.advance(at)
	if ready {
		r.ready++
	} else {
		r.ready--
	}
}

// availability is what the workloads came to up to at, in no order.
func (ws *workloads) availability(at time.Duration) []Availability {
	var out []Availability
	for _, r := range ws.all { //drydock:unordered the caller sorts them
		now := *r
		now.advance(at)
		out = append(out, now.Availability)
	}
	return out
}
