package scenarios

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Kind returns the name of the action's one field besides at, such as
// "restartKubelet".
func (a *Action) Kind() string {
	if k := a.kinds(); len(k) > 0 {
		return k[0]
	}
	return ""
}

// kinds returns the names of all fields besides at that are set.
func (a *Action) kinds() []string {
	var out []string
	rv := reflect.ValueOf(a).Elem()
	for i := range rv.NumField() {
		if f := rv.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() {
			name, _, _ := strings.Cut(rv.Type().Field(i).Tag.Get("json"), ",")
			out = append(out, name)
		}
	}
	return out
}

func (v *validator) action(at string, a *Action) {
	a.Pos = v.d.pos(find(v.doc, at))
	switch kinds := a.kinds(); len(kinds) {
	case 0:
		v.errorf(at, "says nothing that happens: besides at it needs apply, delete, fault or another action")
	case 1:
	default:
		v.errorf(at+"."+kinds[1], "an action is one thing, but this is %s", strings.Join(kinds, " and "))
	}
	if d := v.s.Spec.Duration; a.At > d {
		v.errorf(at+".at", "%v is after the scenario's end: its duration is %v", a.At, d)
	}
	if a.Apply != nil {
		v.apply(at+".apply", a.Apply)
	}
	if a.Template != nil {
		v.template(at+".template", a.Template)
		if u := a.Template.Until; u > 0 && u <= a.At {
			v.errorf(at+".template.until", "%v is not after the action's time, %v", u, a.At)
		}
	}
	if a.Patch != nil {
		v.patch(at+".patch", a.Patch)
	}
	if a.Delete != nil {
		v.delete(at+".delete", a.Delete)
	}
	if a.Fault != nil {
		v.fault(at+".fault", a.Fault)
	}
	v.controlPlaneAction(at, a)
	if r := a.Reboot; r != nil && r.Down == 0 && valueAt(v.doc, at+".reboot.down") == nil {
		r.Down = defaultRebootDown
	}
	if r := a.Reboot; r != nil {
		v.over(at+".reboot.over", a.At, r.Over)
	}
	if r := a.RestartKubelet; r != nil {
		v.over(at+".restartKubelet.over", a.At, r.Over)
	}
	for _, n := range a.nodes() {
		v.selection(at+"."+n.field, n.sel, n.required)
	}
	if a.Usage != nil {
		v.usageChange(at+".usage", a.Usage)
	}
	for _, c := range []struct {
		field string
		on    *OnContainer
	}{{"stopContainer", a.StopContainer}, {"killContainer", a.KillContainer}, {"removeContainer", a.RemoveContainer}} {
		if c.on != nil {
			c.on.Pod = v.podRef(at+"."+c.field+".pod", c.on.Pod)
		}
	}
	if s := a.KillSandbox; s != nil {
		s.Pod = v.podRef(at+".killSandbox.pod", s.Pod)
	}
	if s := a.StopSandbox; s != nil {
		s.Pod = v.podRef(at+".stopSandbox.pod", s.Pod)
	}
	if w := a.WriteStaticPod; w != nil {
		v.staticPod(at+".writeStaticPod.file", w.File, &w.Manifest)
	}
	if r := a.RemoveStaticPod; r != nil {
		v.staticPod(at+".removeStaticPod.file", r.File, &Manifest{})
	}
}

// over checks the time over which an action is spread.
func (v *validator) over(at string, begin, over time.Duration) {
	switch d := v.s.Spec.Duration; {
	case over < 0:
		v.errorf(at, "%v is negative", over)
	case over > 0 && begin <= d && begin+over > d:
		v.errorf(at, "%v from %v on is after the scenario's end: its duration is %v", over, begin, d)
	}
}

type nodeField struct {
	field    string
	sel      *Nodes
	required bool
}

// nodes returns the selections of nodes that the action has.
func (a *Action) nodes() []nodeField {
	var out []nodeField
	add := func(field string, sel *Nodes, required bool) {
		out = append(out, nodeField{field + ".node", sel, required})
	}
	if a.Template != nil {
		add("template", &a.Template.Node, false)
	}
	if a.Fault != nil {
		add("fault", &a.Fault.Node, a.Fault.API == nil && a.Fault.Component == "")
	}
	if a.Drain != nil {
		add("drain", &a.Drain.Node, true)
	}
	if a.PowerCut != nil {
		add("powerCut", &a.PowerCut.Node, true)
	}
	if a.Reboot != nil {
		add("reboot", &a.Reboot.Node, true)
	}
	if a.Usage != nil {
		add("usage", &a.Usage.Node, true)
	}
	if field, sel := a.shutdownNodes(); sel != nil {
		add(field, sel, true)
	}
	if a.RestartKubelet != nil {
		add("restartKubelet", &a.RestartKubelet.Node, true)
	}
	for _, x := range []struct {
		field string
		on    *OnNodes
	}{{"cordon", a.Cordon}, {"uncordon", a.Uncordon}, {"stopKubelet", a.StopKubelet}, {"startKubelet", a.StartKubelet}, {"stopRuntime", a.StopRuntime}, {"startRuntime", a.StartRuntime}} {
		if x.on != nil {
			add(x.field, &x.on.Node, true)
		}
	}
	for _, x := range []struct {
		field string
		on    *OnContainer
	}{{"stopContainer", a.StopContainer}, {"killContainer", a.KillContainer}, {"removeContainer", a.RemoveContainer}} {
		if x.on != nil {
			add(x.field, &x.on.Node, false)
		}
	}
	if a.KillSandbox != nil {
		add("killSandbox", &a.KillSandbox.Node, false)
	}
	if a.StopSandbox != nil {
		add("stopSandbox", &a.StopSandbox.Node, false)
	}
	if a.WriteStaticPod != nil {
		add("writeStaticPod", &a.WriteStaticPod.Node, true)
	}
	if a.RemoveStaticPod != nil {
		add("removeStaticPod", &a.RemoveStaticPod.Node, true)
	}
	return out
}

// selection checks that a selection selects something.
func (v *validator) selection(at string, sel *Nodes, required bool) {
	if len(*sel) == 0 {
		switch {
		case !required || len(v.names) == 0:
		case len(v.names) == 1:
			*sel = Nodes{v.names[0]}
		default:
			v.errorf(at, "must be set, as there are %d nodes", len(v.names))
		}
		return
	}
	for i, pattern := range *sel {
		found := false
		for _, n := range v.names {
			if fakecri.MatchPattern(pattern, n) {
				found = true
				break
			}
		}
		if found || len(v.names) == 0 {
			continue
		}
		where := at
		if len(*sel) > 1 {
			where = fmt.Sprintf("%s[%d]", at, i)
		}
		v.errorf(where, "there is no node %q%s", short(pattern), suggest.Suffix(pattern, v.names[:min(len(v.names), mostCandidates)]))
	}
}

// mostCandidates is how many names are looked at for one that was meant.
const mostCandidates = 2000

// podRef writes a pod's name in full.
func (v *validator) podRef(at, pod string) string {
	if pod == "" {
		return ""
	}
	ns, name, ok := strings.Cut(pod, "/")
	if !ok {
		return v1.NamespaceDefault + "/" + pod
	}
	if ns == "" || name == "" || strings.Contains(name, "/") {
		v.errorf(at, "%q is no pod: want name or namespace/name", short(pod))
	}
	return pod
}

func (v *validator) apply(at string, a *Apply) {
	n := 0
	for _, set := range []bool{a.File != "", len(a.Files) > 0, a.Manifest != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		v.errorf(at, "needs exactly one of file, files and manifest")
		return
	}
	if a.Manifest != nil {
		if isText(v.doc, at+".manifest") {
			v.textManifest(at + ".manifest")
		}
		a.Objects = a.Manifest.Objects
	}
	if a.File != "" {
		a.Objects = v.file(at+".file", a.File, a.Objects)
	}
	for i, f := range a.Files {
		a.Objects = v.file(fmt.Sprintf("%s.files[%d]", at, i), f, a.Objects)
	}
}

func (v *validator) file(at, name string, to []Object) []Object {
	return v.d.manifestFile(find(v.doc, at), &path{text: at}, name, to)
}

func (v *validator) textManifest(at string) {
	v.errorf(at, "want a Kubernetes object or a list of them, got a text")
}

func (v *validator) template(at string, t *Template) {
	switch {
	case (t.Replicas == nil) == (t.PerNode == nil):
		v.errorf(at, "needs exactly one of replicas and perNode")
	case t.Replicas != nil && *t.Replicas < 1:
		v.errorf(at+".replicas", "%d is less than 1", *t.Replicas)
	case t.PerNode != nil && *t.PerNode < 1:
		v.errorf(at+".perNode", "%d is less than 1", *t.PerNode)
	case t.Replicas != nil && *t.Replicas > maxPods:
		v.errorf(at+".replicas", "%d is more than %d", *t.Replicas, maxPods)
		t.Replicas = nil
	case t.PerNode != nil && *t.PerNode > maxPods:
		v.errorf(at+".perNode", "%d is more than %d", *t.PerNode, maxPods)
		t.PerNode = nil
	}
	if len(t.Node) > 0 && t.PerNode == nil {
		v.errorf(at+".node", "goes with perNode only")
	}
	switch {
	case t.Lifetime != nil && t.Lifetime.Min < time.Second:
		v.errorf(at+".lifetime", "%v is less than 1s", t.Lifetime.Min)
	case t.Lifetime == nil && t.Until != 0:
		v.errorf(at+".until", "goes with lifetime only")
	case t.Until < 0:
		v.errorf(at+".until", "%v is negative", t.Until)
	}
	switch {
	case len(t.Manifest.Objects) > 1:
		v.errorf(at+".manifest", "a template is one pod, not %d objects", len(t.Manifest.Objects))
	case len(t.Manifest.Objects) == 0 && isText(v.doc, at+".manifest"):
		v.textManifest(at + ".manifest")
	}
	for _, o := range t.Manifest.Objects {
		if _, ok := o.Object.(*v1.Pod); !ok {
			v.errorf(at+".manifest.kind", "a template is a Pod, not a %s", o.GetObjectKind().GroupVersionKind().Kind)
		}
	}
}

func (v *validator) patch(at string, p *Patch) {
	if p.Type == "" {
		p.Type = "strategic"
	}
	p.Namespace = v.namespace(at, p.Kind, p.Namespace)
	if len(p.Patch) == 0 {
		return
	}
	list := p.Patch[0] == '['
	if p.Type == "json" && !list {
		v.errorf(at+".patch", "a patch of type json is a list of operations")
	} else if p.Type != "json" && p.Patch[0] != '{' {
		v.errorf(at+".patch", "a patch of type %s is a part of the object, a mapping", p.Type)
	}
}

func (v *validator) delete(at string, d *Delete) {
	if d.Kind == "" {
		d.Kind = "Pod"
	}
	d.Namespace = v.namespace(at, d.Kind, d.Namespace)
	if g := d.GracePeriodSeconds; g != nil && *g < 0 {
		v.errorf(at+".gracePeriodSeconds", "%d is negative", *g)
	}
}

// namespace returns the namespace that is meant.
func (v *validator) namespace(at, kind, ns string) string {
	namespaced := apiserver.NewKinds().Namespaced(apiserver.Kind(kind))
	if ns != "" && !namespaced {
		v.errorf(at+".namespace", "a %s has no namespace", kind)
	}
	if ns == "" && namespaced {
		return v1.NamespaceDefault
	}
	return ns
}

func (v *validator) fault(at string, f *Fault) {
	n := 0
	for _, set := range []bool{f.CRI != nil, f.API != nil, f.Partition != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		v.errorf(at, "needs exactly one of cri, api and partition")
	}
	v.faultComponent(at, f)
	if f.API != nil {
		v.apiFault(at+".api", f.API)
	}
	if f.CRI == nil {
		return
	}
	c := f.CRI
	at += ".cri"
	if c.Error == nil && c.Latency == nil && !c.Hang {
		v.errorf(at, "has no effect: needs error, latency or hang")
	}
	if c.Method != "" {
		found := false
		for _, m := range criMethods() {
			found = found || fakecri.MatchPattern(c.Method, m)
		}
		if !found {
			v.errorf(at+".method", "there is no CRI method %q%s", short(c.Method), suggest.Suffix(c.Method, criMethods()))
		}
	}
	if c.Pod != "" && c.Pod != "*" {
		c.Pod = v.podRef(at+".pod", c.Pod)
	}
	if c.Nth < 0 {
		v.errorf(at+".nth", "%d is negative", c.Nth)
	}
	if c.Count < 0 {
		v.errorf(at+".count", "%d is negative", c.Count)
	}
}
