package scenarios

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/kubelet"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane"
)

// act does one action of the timeline. What the API or a node answers with an
// error is noted in the result; the run goes on.
func (r *run) act(a *Action) error {
	if err := r.dispatch(a); err != nil {
		r.result.Errors = append(r.result.Errors, fmt.Sprintf("%s: %v", a.Pos, err))
		r.note("scenario", "error", trace.Str("message", err.Error()))
	}
	return nil
}

func (r *run) dispatch(a *Action) error {
	switch {
	case a.Apply != nil:
		return r.apply(a.Apply)
	case a.Template != nil:
		return r.template(a.Template)
	case a.Patch != nil:
		return r.patch(a.Patch)
	case a.Delete != nil:
		return r.delete(a.Delete)
	case a.Fault != nil:
		return r.fault(a.Fault)
	case a.PowerCut != nil:
		return r.onNodes("power cut", a.PowerCut.Node, func(n *sim.Node) error { n.PowerCut(a.PowerCut.For); return nil })
	case a.Reboot != nil:
		down := a.Reboot.Down
		if down == 0 {
			down = 30 * time.Second
		}
		return r.onNodesOver("reboot", a.Reboot.Node, a.Reboot.Over, func(n *sim.Node) error { n.PowerCut(down); return nil })
	case a.RestartKubelet != nil:
		return r.onNodesOver("restart kubelet", a.RestartKubelet.Node, a.RestartKubelet.Over, func(n *sim.Node) error { n.RestartKubelet(a.RestartKubelet.Down); return nil })
	case a.StopKubelet != nil:
		return r.onNodes("stop kubelet", a.StopKubelet.Node, func(n *sim.Node) error { n.StopKubelet(); return nil })
	case a.StartKubelet != nil:
		return r.onNodes("start kubelet", a.StartKubelet.Node, func(n *sim.Node) error { n.StartKubelet(); return nil })
	case a.StopRuntime != nil:
		return r.onNodes("stop runtime", a.StopRuntime.Node, func(n *sim.Node) error { n.StopRuntime(); return nil })
	case a.StartRuntime != nil:
		return r.onNodes("start runtime", a.StartRuntime.Node, func(n *sim.Node) error { n.StartRuntime(); return nil })
	case a.Usage != nil:
		return r.onNodes("usage", a.Usage.Node, func(n *sim.Node) error { n.SetUsage(a.Usage.machine()); return nil })
	case a.WriteStaticPod != nil:
		w := a.WriteStaticPod
		return r.onNodes("write static pod "+w.File, w.Node, func(n *sim.Node) error { return n.WriteStaticPod(w.File, w.Manifest.Content) })
	case a.RemoveStaticPod != nil:
		w := a.RemoveStaticPod
		return r.onNodes("remove static pod "+w.File, w.Node, func(n *sim.Node) error { return n.RemoveStaticPod(w.File) })
	}
	if done, err := r.controlPlaneAction(a); done {
		return err
	}
	if _, sel := a.shutdownNodes(); sel != nil {
		return r.shutdown(a, *sel)
	}
	return r.outside(a)
}

// outside does what happens to containers behind the kubelet's back.
func (r *run) outside(a *Action) error {
	type act func(rt *fakecri.Runtime, pod, container string) error
	on := func(verb string, nodes Nodes, pod, container string, do act) error {
		pod = podKey(pod)
		if len(nodes) == 0 {
			ns, name, _ := strings.Cut(pod, "/")
			p := r.cluster.Store().Pod(ns, name)
			if p == nil {
				return fmt.Errorf("%s: there is no pod %s", verb, pod)
			}
			nodes = Nodes{p.Spec.NodeName}
		}
		return r.onNodes(verb+" of "+strings.TrimSuffix(pod+"/"+container, "/"), nodes, func(n *sim.Node) error { return do(n.Runtime(), pod, container) })
	}
	if r.opts.Real != nil {
		return r.outsideReal(a)
	}
	switch {
	case a.StopContainer != nil:
		x := a.StopContainer
		return on("stop", x.Node, x.Pod, x.Container, func(rt *fakecri.Runtime, pod, c string) error { return rt.SignalContainerOutside(pod, c, 15) })
	case a.KillContainer != nil:
		x := a.KillContainer
		return on("kill", x.Node, x.Pod, x.Container, (*fakecri.Runtime).StopContainerOutside)
	case a.RemoveContainer != nil:
		x := a.RemoveContainer
		return on("removal", x.Node, x.Pod, x.Container, (*fakecri.Runtime).RemoveContainerOutside)
	case a.StopSandbox != nil:
		x := a.StopSandbox
		return on("stop of the sandbox", x.Node, x.Pod, "", func(rt *fakecri.Runtime, pod, _ string) error { return rt.StopSandboxOutside(pod) })
	case a.KillSandbox != nil:
		x := a.KillSandbox
		return on("kill of the sandbox", x.Node, x.Pod, "", func(rt *fakecri.Runtime, pod, _ string) error { return rt.KillSandboxOutside(pod) })
	}
	return fmt.Errorf("the action does nothing")
}

// note records what the timeline does to something.
func (r *run) note(object, verb string, fields ...trace.Field) {
	r.cluster.Recorder().Record(trace.KindAction, object, verb, fields...)
}

// objectName names an API object as records do: "pod default/web".
func objectName(kind, namespace, name string) string {
	if namespace == "" {
		return strings.ToLower(kind) + " " + name
	}
	return strings.ToLower(kind) + " " + namespace + "/" + name
}

// onNodes does something on each of the nodes that are meant.
func (r *run) onNodes(verb string, nodes Nodes, do func(*sim.Node) error) error {
	for _, name := range r.s.SelectNodes(nodes) {
		r.cluster.Recorder().Record(trace.KindAction, "node "+name, verb)
		if err := do(r.cluster.Node(name)); err != nil {
			return err
		}
	}
	return nil
}

// onNodesOver is onNodes with the nodes one after another, spread over a time.
func (r *run) onNodesOver(verb string, nodes Nodes, over time.Duration, do func(*sim.Node) error) error {
	if over == 0 {
		return r.onNodes(verb, nodes, do)
	}
	names, now := r.s.SelectNodes(nodes), r.cluster.Now()
	for i, name := range names {
		r.agenda.add(now+over*time.Duration(i)/time.Duration(len(names)), false, func() error {
			r.note("node "+name, verb)
			return do(r.cluster.Node(name))
		})
	}
	return nil
}

func (r *run) apply(a *Apply) error {
	for _, o := range a.Objects {
		obj, ok := o.Object.(apiserver.Object)
		if !ok {
			return fmt.Errorf("%s: the API does not serve %T", o.Pos, o.Object)
		}
		kind := obj.GetObjectKind().GroupVersionKind().Kind
		r.note(objectName(kind, namespace(kind, obj.GetNamespace()), obj.GetName()), "apply")
		if pod, ok := obj.(*v1.Pod); ok {
			r.warnUnsupported(pod)
		}
		for _, what := range r.cluster.Store().Kinds().Of(obj).Dropped(obj) {
			r.warn(objectName(kind, namespace(kind, obj.GetNamespace()), obj.GetName()) + ": " + what)
		}
		if _, err := r.cluster.API().Apply(obj); err != nil {
			return fmt.Errorf("%s: %w", o.Pos, err)
		}
	}
	return nil
}

func (r *run) template(t *Template) error {
	pod, ok := t.Manifest.Objects[0].Object.(*v1.Pod)
	if !ok {
		return fmt.Errorf("a template must be a pod")
	}
	r.warnUnsupported(pod)
	api := r.cluster.API()
	tpl, err := api.NewTemplate(pod)
	if err != nil {
		return err
	}
	var nodes []string // of each pod
	if t.Replicas != nil {
		r.note(objectName("Pod", namespace("Pod", pod.Namespace), pod.Name), "template", trace.Int("replicas", int64(*t.Replicas)))
		nodes = make([]string, *t.Replicas)
	} else {
		on := r.s.SelectNodes(t.Node)
		if len(t.Node) == 0 {
			on = r.s.SelectNodes(Nodes{"*"})
		}
		r.note(objectName("Pod", namespace("Pod", pod.Namespace), pod.Name), "template", trace.Int("perNode", int64(*t.PerNode)), trace.Int("nodes", int64(len(on))))
		for _, n := range on {
			for range *t.PerNode {
				nodes = append(nodes, n)
			}
		}
	}
	stamp := func(i int, node string) (string, error) {
		name := fmt.Sprintf("%s-%d", pod.Name, i)
		_, err := api.CreateFromTemplate(tpl, apiserver.Stamp{Name: name, NodeName: node})
		return name, err
	}
	if t.Lifetime != nil {
		return r.churn(t, namespace("Pod", pod.Namespace), nodes, stamp)
	}
	for i, n := range nodes {
		if _, err := stamp(i, n); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) patch(p *Patch) error {
	pt := map[string]types.PatchType{"": types.StrategicMergePatchType, "strategic": types.StrategicMergePatchType, "merge": types.MergePatchType, "json": types.JSONPatchType}[p.Type]
	ns := namespace(p.Kind, p.Namespace)
	r.note(objectName(p.Kind, ns, p.Name), "patch", trace.Str("subresource", p.Subresource))
	_, err := r.cluster.API().Patch(apiserver.Kind(p.Kind), ns, p.Name, pt, p.Patch, p.Subresource)
	return err
}

func (r *run) delete(d *Delete) error {
	kind := d.Kind
	if kind == "" {
		kind = "Pod"
	}
	ns := namespace(kind, d.Namespace)
	names := []string{d.Name}
	if strings.ContainsAny(d.Name, "*?") {
		names = nil
		objs, err := r.cluster.API().List(apiserver.Kind(kind), ns)
		if err != nil {
			return err
		}
		for _, o := range objs {
			if fakecri.MatchPattern(d.Name, o.GetName()) {
				names = append(names, o.GetName())
			}
		}
	}
	cascade := map[string]metav1.DeletionPropagation{
		"": metav1.DeletePropagationBackground, "background": metav1.DeletePropagationBackground,
		"foreground": metav1.DeletePropagationForeground, "orphan": metav1.DeletePropagationOrphan,
	}[d.Cascade]
	for _, name := range names {
		var fields []trace.Field
		if d.GracePeriodSeconds != nil {
			fields = append(fields, trace.Int("grace", *d.GracePeriodSeconds))
		}
		if d.Cascade != "" {
			fields = append(fields, trace.Str("cascade", d.Cascade))
		}
		r.note(objectName(kind, ns, name), "delete", fields...)
		if err := r.cluster.API().Delete(apiserver.Kind(kind), ns, name, metav1.DeleteOptions{GracePeriodSeconds: d.GracePeriodSeconds, PropagationPolicy: &cascade}); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) fault(f *Fault) error {
	nodes := r.s.SelectNodes(f.Node)
	if f.Component != "" {
		nodes = controlplane.Clients(f.Component)
	}
	switch {
	case f.CRI != nil:
		rule := fakeFault(f.CRI)
		for _, n := range nodes {
			r.cluster.Node(n).Runtime().AddFault(rule)
		}
	case f.API != nil:
		if len(f.Node) == 0 && f.Component == "" {
			nodes = []string{""}
		}
		r.apiFault(f.API, nodes)
	case f.Partition != nil:
		for _, n := range nodes {
			r.during("partition", n, f.Partition.For, r.cluster.API().Partition(n))
		}
	}
	return nil
}

// fakeFault is a fault as the runtime takes it.
func fakeFault(f *CRIFault) fakecri.Fault {
	rule := fakecri.Fault{
		Method: f.Method, Pod: f.Pod, Container: f.Container, Image: f.Image,
		Latency: fakeRange(f.Latency), Hang: f.Hang, For: f.For, Nth: f.Nth, Count: f.Count,
	}
	if rule.Pod != "" && rule.Pod != "*" {
		rule.Pod = podKey(rule.Pod)
	}
	if e := f.Error; e != nil {
		rule.Error = &fakecri.FaultError{Code: e.Code, Message: e.Message}
	}
	return rule
}

// apiFault makes an API fault act for each of the nodes; "" is everybody.
func (r *run) apiFault(f *APIFault, nodes []string) {
	for _, n := range nodes {
		rule := apiserver.Fault{Node: n, Verb: f.Verb, Resource: f.Resource, Namespace: f.Namespace, Name: f.Name, Latency: f.Latency, Refuse: f.Refuse, Probability: f.Probability}
		if f.Error != nil {
			rule.Code, rule.Reason, rule.Message = f.Error.Code, metav1.StatusReason(f.Error.Reason), f.Error.Message
		}
		r.during(f.words(), n, f.For, r.cluster.API().AddFault(rule))
	}
}

// warnUnsupported warns of what a pod asks for and the kubelet does not act on
// yet.
func (r *run) warnUnsupported(pod *v1.Pod) {
	for _, what := range kubelet.Unsupported(pod) {
		r.warn(fmt.Sprintf("pod %s/%s: %s", namespace("Pod", pod.Namespace), pod.Name, what))
	}
}

// during records a fault that has begun, and ends it after its time; 0 means
// never.
func (r *run) during(what, node string, d time.Duration, end func()) {
	object := "api"
	switch {
	case r.cluster.Node(node) != nil:
		object = "node " + node
	case node != "":
		object = "component " + node
	}
	r.cluster.Recorder().Record(trace.KindFault, object, what+" begins")
	if d == 0 {
		return
	}
	r.agenda.add(r.cluster.Now()+d, false, func() error {
		end()
		r.cluster.Recorder().Record(trace.KindFault, object, what+" ends")
		return nil
	})
}

// podKey is "namespace/name" of a pod that may be named without a namespace.
func podKey(pod string) string {
	if strings.Contains(pod, "/") {
		return pod
	}
	return metav1.NamespaceDefault + "/" + pod
}

func namespace(kind, ns string) string {
	if !apiserver.NewKinds().Namespaced(apiserver.Kind(kind)) {
		return ""
	}
	if ns == "" {
		return metav1.NamespaceDefault
	}
	return ns
}
