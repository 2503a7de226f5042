package scale

import (
	"cmp"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/usage"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// traceFeed replays a trace: its times begin when the nodes are ready. One timer
// goes from row to row, however many there are. A timer per row would be a million timers from
// the start, and the loop's heap would carry them all along.
type traceFeed struct {
	r *driver
	t *Trace
	// byName: by namespace/name; only read once the run began.
	byName    map[string]*row
	templates map[templateKey]*apiserver.Template
	next      int
}

// templateKey is what pods have in common that share a spec. exits decides the restart policy.
type templateKey struct {
	shape            *shape
	namespace, image string
	exits            bool
}

// prepare makes the namespaces and has the API look at a pod of each shape. Rows are looked at in
// order; most find their template made.
func (f *traceFeed) prepare() error {
	f.byName = make(map[string]*row, len(f.t.rows))
	f.templates = map[templateKey]*apiserver.Template{}
	for i := range f.t.rows {
		r := &f.t.rows[i]
		f.byName[r.namespace+"/"+r.name] = r
		if err := f.r.namespace(r.namespace); err != nil {
			return err
		}
		if _, err := f.template(r); err != nil {
			return err
		}
	}
	return nil
}

// begin does nothing: no pod of a trace is wanted before its time. So start-up is over at once,
// and times count from then.
func (f *traceFeed) begin() {}

// steady begins the replay.
func (f *traceFeed) steady() { f.arrive() }

// arrive creates the rows that are due, and comes back for the next. Times are compared with
// steadyFrom, not added up, so no error accumulates.
func (f *traceFeed) arrive() {
	began := f.r.result.steadyFrom
	for ; f.next < len(f.t.rows); f.next++ {
		r := &f.t.rows[f.next]
		if wait := began + r.arrival - f.r.now(); wait > 0 {
			f.r.after(wait, f.arrive)
			return
		}
		f.create(r)
	}
}

// create creates a row's pod, and sets the timer of its deletion if it has one. The names are
// kept by the trace, so a stamp is no allocation but the pod itself.
func (f *traceFeed) create(r *row) {
	t, err := f.template(r)
	if err == nil {
		_, err = f.r.cluster.API().CreateFromTemplate(t, apiserver.Stamp{Name: r.name})
	}
	if err != nil {
		f.r.failed(r.namespace, r.name, err)
		return
	}
	f.r.result.Created++
	if r.lifetime > 0 {
		f.r.after(r.lifetime, func() { f.r.delete(r.namespace, r.name) })
	}
}

// template returns the pod of a row, which it shares with all rows that ask for
// the same. The pods of one template differ only by their names.
func (f *traceFeed) template(r *row) (*apiserver.Template, error) {
	k := templateKey{r.shape, r.namespace, r.image, r.runFor > 0}
	if t := f.templates[k]; t != nil {
		return t, nil
	}
	c := v1.Container{Name: "app", Image: r.image, Resources: v1.ResourceRequirements{Requests: r.shape.requests, Limits: r.shape.limits}}
	c.Image = cmp.Or(c.Image, defaultImage)
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "trace-", Namespace: r.namespace, Labels: r.shape.labels},
		Spec:       v1.PodSpec{Containers: []v1.Container{c}, NodeSelector: r.shape.selector, Affinity: r.shape.affinity},
	}
	if k.exits {
		pod.Spec.RestartPolicy = v1.RestartPolicyNever
	}
	t, err := f.r.cluster.API().NewTemplate(pod)
	if err != nil {
		return nil, fmt.Errorf("pod %s/%s of the trace: %w", r.namespace, r.name, err)
	}
	f.templates[k] = t
	return t, nil
}

// behave is called on the nodes' loops. So it reads byName only, which does not
// change any more. A row without usage or end leaves the container to run its command, whose
// image knows none: it just runs.
func (f *traceFeed) behave(pod *runtimeapi.PodSandboxConfig, _ *runtimeapi.ContainerConfig) *fakecri.Behaviour {
	r := f.byName[pod.Metadata.Namespace+"/"+pod.Metadata.Name]
	if r == nil || r.runFor == 0 && r.cpu == 0 && r.memory == 0 {
		return nil
	}
	b := &fakecri.Behaviour{ExitCode: r.exit}
	if r.runFor > 0 {
		b.RunFor = fakecri.Exactly(r.runFor)
	}
	if r.cpu > 0 {
		b.CPU = usage.Constant(r.cpu)
	}
	if r.memory > 0 {
		b.Memory = usage.Constant(r.memory)
	}
	return b
}
