package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane"
)

// Census counts what nodes keep of pods, and names what they keep of pods that
// the API no longer has, and what the control plane keeps of objects that are gone.
type Census struct {
	// At is when it was taken, since the start of the run.
	At time.Duration
	// Pods are the API's. Leaving are those that left it in the last
	// CensusSettles, of which traces may be left.
	Pods, Leaving int
	// What is on all nodes. Of workers and statuses only those of kubelets that
	// run.
	Sandboxes, Containers, Images, ImageRecords int
	VolumeDirs, LogDirs, Mounts                 int
	Workers, Statuses                           int
	Timers, Tasks                               int
	// Down are nodes without a running kubelet: nobody cleans up there, and
	// nothing is told of them.
	Down []string
	// Leaks are in the order of the nodes; the control plane's come last.
	Leaks []Leak
}

// Leak is something that is left on a node, or in the control plane.
type Leak struct {
	// Node is the node's name, or "control plane", which no node is called.
	Node string
	// What it is: sandbox, container, "running container", "volume directory",
	// "log directory", mount, "image record", kubelet, runtime, controller, task or
	// timer.
	What string
	// Name is its name, or where it is kept.
	Name string
	// Pod is the pod that it was of, in the control plane any object, if that is
	// known.
	Pod string
}

const controlPlaneLeak = "control plane"

func (l Leak) String() string {
	s := fmt.Sprintf("%s: %s %s", l.Node, l.What, l.Name)
	switch {
	case l.Pod == "":
	case l.Node == controlPlaneLeak:
		s += " of " + l.Pod
	default:
		s += " of pod " + l.Pod
	}
	return s
}

// CensusSettles is how long after a pod has left the API its traces may stay:
// what upstream cleans up periodically takes up to two minutes.
const CensusSettles = 3 * time.Minute

// departed are the pods that left the API, and when other objects did.
type departed struct {
	at         map[string]time.Duration // by UID; a static pod's too
	names      map[string]string        // namespace/name by UID
	containers map[string]string        // UID by container ID
	objects    map[string]time.Duration // by UID, pods left out
}

func newDeparted() *departed {
	return &departed{at: map[string]time.Duration{}, names: map[string]string{}, containers: map[string]string{}, objects: map[string]time.Duration{}}
}

func (d *departed) change(c *apiserver.Change, at time.Duration) {
	p, ok := c.New.(*v1.Pod)
	if !ok {
		if c.Type == watch.Deleted && c.Kind != apiserver.KindEvent {
			uid := string(c.New.GetUID())
			d.objects[uid], d.names[uid] = at, c.New.GetNamespace()+"/"+c.New.GetName()
		}
		return
	}
	uid := kubeletUID(p)
	for _, list := range [][]v1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses} {
		for i := range list {
			if id := list[i].ContainerID; id != "" {
				d.containers[id[strings.Index(id, "//")+len("//"):]] = uid
			}
		}
	}
	if c.Type == watch.Deleted {
		for _, id := range []string{string(p.UID), uid} {
			d.at[id], d.names[id] = at, podName(p)
		}
	}
}

// Census takes a census. It is for use between runs, and nil unless
// Options.Census asked for it or in a cluster with hosts.
func (c *Cluster) Census() *Census {
	if c.gone == nil || c.engine == nil {
		return nil
	}
	t := &censusTaker{c: c, out: &Census{At: c.Now()}, known: map[string]*v1.Pod{}, gone: map[string]bool{}, onNode: map[string]int{}}
	for _, p := range c.Store().Pods() {
		t.out.Pods++
		t.onNode[p.Spec.NodeName]++
		t.known[string(p.UID)], t.known[kubeletUID(p)] = p, p
	}
	for uid, at := range c.gone.at { //drydock:unordered each is judged for itself
		switch {
		case t.known[uid] != nil:
		case t.out.At-at < CensusSettles:
			t.known[uid] = &v1.Pod{}
			if strings.Contains(uid, "-") { // not a static pod's other UID
				t.out.Leaving++
			}
		default:
			t.gone[uid] = true
		}
	}
	for id, uid := range c.gone.containers { //drydock:unordered copies a map
		if t.gone[uid] {
			t.gone[id] = true
		}
	}
	for _, n := range c.nodes {
		t.node(n)
	}
	t.controlPlane()
	return t.out
}

type censusTaker struct {
	c   *Cluster
	out *Census
	// known: by UID; without a name: it has just left.
	known  map[string]*v1.Pod
	gone   map[string]bool // UIDs and containers' IDs
	onNode map[string]int  // the API's pods
}

func (t *censusTaker) leak(n *Node, what, name, uid string) {
	t.out.Leaks = append(t.out.Leaks, Leak{Node: n.name, What: what, Name: name, Pod: t.c.gone.names[uid]})
}

func (t *censusTaker) node(n *Node) {
	if n.kubelet == nil || n.off {
		t.out.Down = append(t.out.Down, n.name)
		return
	}
	t.runtime(n)
	t.files(n)
	t.imageRecords(n)
	w := walkLeaks(n.kubelet, t.gone)
	t.out.Workers += w.sizes["podworkers.records.byUID"]
	t.out.Statuses += w.sizes["status.Manager.pods"]
	for _, l := range w.found {
		t.leak(n, "kubelet", l.String(), l.key)
	}
	for _, l := range walkLeaks(n.rt, t.gone).found {
		t.leak(n, "runtime", l.String(), l.key)
	}
	t.loop(n)
}

// controlPlane finds what the scheduler and the controllers keep of objects that
// are gone: by UID, and by the keys that no object has any more.
func (t *censusTaker) controlPlane() {
	gone, have := maps.Clone(t.gone), map[string]bool{}
	for uid, at := range t.c.gone.objects { //drydock:unordered each is judged for itself
		if t.out.At-at >= CensusSettles {
			gone[uid] = true
		}
	}
	for _, k := range t.c.Store().Kinds().Collected() {
		list, _ := t.c.Store().List(k, "") // the kind is served
		for _, obj := range list {
			have[obj.GetNamespace()+"/"+obj.GetName()] = true
		}
	}
	for uid, name := range t.c.gone.names { //drydock:unordered makes a set
		if gone[uid] && !have[name] {
			gone[name] = true
		}
	}
	for _, l := range walkControlPlane(t.c.controlPlane, gone).found {
		t.out.Leaks = append(t.out.Leaks, Leak{Node: controlPlaneLeak, What: "controller", Name: l.String(), Pod: t.c.gone.names[l.key]})
	}
}

// runtime counts sandboxes, containers and images.
func (t *censusTaker) runtime(n *Node) {
	for _, s := range n.rt.Sandboxes() {
		t.out.Sandboxes++
		if t.unknown(s.UID) {
			t.leak(n, "sandbox", fmt.Sprintf("%s (%s/%s)", s.ID, s.Namespace, s.Pod), s.UID)
		}
	}
	for _, c := range n.rt.Containers() {
		t.out.Containers++
		name := fmt.Sprintf("%s (%s/%s/%s)", c.ID, c.Namespace, c.Pod, c.Name)
		switch p := t.known[c.UID]; {
		case t.unknown(c.UID):
			t.leak(n, "container", name, c.UID)
		case p != nil && c.Alive && (p.Status.Phase == v1.PodFailed || p.Status.Phase == v1.PodSucceeded):
			t.leak(n, "running container", name, c.UID)
		}
	}
	t.out.Images += len(n.rt.PresentImages())
}

// unknown reports whether the API has no such pod and had none just now. A static
// pod whose mirror pod's name is taken is nobody's leak: its UID is a hash.
func (t *censusTaker) unknown(uid string) bool {
	return t.known[uid] == nil && (t.gone[uid] || strings.Contains(uid, "-"))
}

// files counts the pods' directories and mounts.
func (t *censusTaker) files(n *Node) {
	for _, root := range []struct {
		dir, what string
		count     *int
	}{{path.Join(kubeletRoot, "pods"), "volume directory", &t.out.VolumeDirs}, {"/var/log/pods", "log directory", &t.out.LogDirs}} {
		entries, err := n.fs.ReadDir(root.dir)
		if err != nil {
			continue // there was no pod yet
		}
		for _, e := range entries {
			*root.count++
			if uid := e.Name()[strings.LastIndexByte(e.Name(), '_')+1:]; t.unknown(uid) {
				t.leak(n, root.what, path.Join(root.dir, e.Name()), uid)
			}
		}
	}
	for _, m := range n.fs.Mounts() {
		rest, below := strings.CutPrefix(m, path.Join(kubeletRoot, "pods")+"/")
		if !below {
			continue
		}
		t.out.Mounts++
		if uid, _, _ := strings.Cut(rest, "/"); t.unknown(uid) {
			t.leak(n, "mount", m, uid)
		}
	}
}

const kubeletRoot = "/var/lib/kubelet"

// imageRecords counts the records of images that the kubelet pulled; those of
// images that the runtime no longer has are left over.
func (t *censusTaker) imageRecords(n *Node) {
	dir := path.Join(kubeletRoot, "image_manager/pulled")
	entries, err := n.fs.ReadDir(dir)
	if err != nil {
		return // none was pulled
	}
	images := n.rt.PresentImages()
	for _, e := range entries {
		t.out.ImageRecords++
		var record struct {
			ImageRef string `json:"imageRef"`
		}
		data, err := n.fs.ReadFile(path.Join(dir, e.Name()))
		if err == nil {
			err = json.Unmarshal(data, &record)
		}
		if err == nil && !slices.ContainsFunc(images, func(i fakecri.ImageInfo) bool { return i.ID == record.ImageRef }) {
			t.leak(n, "image record", record.ImageRef, "")
		}
	}
}

// perPod bounds the timers of one name that belong to one pod: a container's
// probes, say. perNode bounds those that belong to none.
const perPod, perNode = 64, 64

// loop counts timers and tasks. Nothing tells whose a timer is, so more of one
// name than the node's pods can account for are a leak, and so is a task of the
// kubelet or the runtime that waits for longer than anything there takes.
func (t *censusTaker) loop(n *Node) {
	for _, x := range n.l.Armed() {
		t.out.Timers += x.N
		if pods := t.onNode[n.name]; x.N > perNode+perPod*pods {
			t.leak(n, "timer", fmt.Sprintf("%s of group %s, %d times", cmp.Or(x.Name, "(without a name)"), x.Group, x.N), "")
		}
	}
	for _, w := range n.l.Waiting() {
		t.out.Tasks++
		if w.For > 4*time.Minute && !waitsForLong(w.Name) && (w.Group == "kubelet" || w.Group == "daemon") {
			t.leak(n, "task", fmt.Sprintf("%s of group %s, waiting for %s %s since %s", w.Name, w.Group, w.Kind, w.On, w.For), "")
		}
	}
}

// waitsForLong reports whether tasks of a name wait for as long as there is what they follow: the kubelet's
// own loop, the streams of plugins, a request for a certificate that nobody signs; and the first
// status of a node that the API does not take in.
func waitsForLong(name string) bool {
	switch name {
	case "kubelet", "device-plugin", "dra-health", "certificate rotation", "fast-node-status":
		return true
	}
	return false
}

// keptByDesign are the places of what is kept for a while, or in bounded number:
// a kubelet's reasons; what ran when it started (containerRunningSet of
// cm/devicemanager); who had a node's devices, until the next pod that wants some
// (UpdateAllocatedDevices there); keys that a controller looks at again later; the
// scheduler's classes; and what was recorded just now.
func keptByDesign(at string) bool {
	for _, end := range [...]string{".reasons.byKey", ".containers.ranBefore", ".allocation.o.Handlers[].providers[].pods", ".waiting"} {
		if strings.HasSuffix(at, end) {
			return true
		}
	}
	return at == "[].classes.byKey" || at == "[].recorder.byKey"
}

type leakVisit struct {
	p uintptr
	t reflect.Type
}

// foundLeak is a key of something gone and the way to it.
type foundLeak struct{ at, key, text string }

func (l foundLeak) String() string { return l.at + " has " + l.text }

type leakWalker struct {
	gone map[string]bool
	// inside reports whether values of a type are looked into.
	inside func(reflect.Type) bool
	seen   map[leakVisit]bool
	found  []foundLeak
	// sizes are those of the maps and slices of structs: by the struct's type and
	// the field.
	sizes map[string]int
}

// walkLeaks walks everything that a kubelet or a runtime can reach, unexported
// fields included, and notes where a map has a key, or a list an entry, that
// belongs to what is gone: pods' UIDs and containers' IDs. What closures hold is
// not seen, what is kept for a while or in bounded number as upstream does is left
// out, and the ground and API objects are not looked into.
func walkLeaks(root any, gone map[string]bool) *leakWalker {
	return walk(root, gone, func(t reflect.Type) bool {
		// From the ground, and from sim, a walk would reach every node of the cluster.
		pkg := t.PkgPath() + "/"
		return !strings.HasPrefix(pkg, "k8s.io/") && !strings.Contains(pkg, "/sim/") && !strings.Contains(pkg, "/ground/") && pkg != "time/" && pkg != "reflect/"
	})
}

// walkControlPlane walks the parts of a control plane that run.
func walkControlPlane(c *controlplane.ControlPlane, gone map[string]bool) *leakWalker {
	return walk(c.Parts(), gone, func(t reflect.Type) bool { return strings.Contains(t.PkgPath(), "/sim/controlplane/") })
}

func walk(root any, gone map[string]bool, inside func(reflect.Type) bool) *leakWalker {
	w := &leakWalker{gone: gone, inside: inside, seen: map[leakVisit]bool{}, sizes: map[string]int{}}
	w.walk(reflect.ValueOf(root), "")
	slices.SortFunc(w.found, func(a, b foundLeak) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.text, b.text)) })
	return w
}

// ofGone is what is gone that a value names.
func (w *leakWalker) ofGone(v reflect.Value) (string, bool) {
	switch v.Kind() {
	case reflect.String:
		s := v.String()
		if w.gone[s] {
			return s, true
		}
		for part := range strings.SplitSeq(s, "/") {
			if w.gone[part] {
				return part, true
			}
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[types.NamespacedName]() {
			// The garbage collector's have a kind before the namespace.
			ns := v.Field(0).String()
			key := ns[strings.LastIndexByte(ns, '/')+1:] + "/" + v.Field(1).String()
			return key, w.gone[key]
		}
		for i := range v.NumField() {
			if key, ok := w.ofGone(v.Field(i)); ok {
				return key, true
			}
		}
	}
	return "", false
}

// named is what is gone that an entry of a list is of.
func (w *leakWalker) named(v reflect.Value) (string, bool) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || !w.inside(v.Type()) && !strings.HasPrefix(v.Type().PkgPath(), "k8s.io/api/") {
		return "", false
	}
	for _, name := range []string{"uid", "UID"} {
		if f := v.FieldByName(name); f.IsValid() {
			if key, ok := w.ofGone(f); ok {
				return key, true
			}
		}
	}
	return "", false
}

func (w *leakWalker) tell(at, key, text string) {
	if !keptByDesign(at) {
		w.found = append(w.found, foundLeak{at, key, text})
	}
}

func (w *leakWalker) walk(v reflect.Value, at string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		visit := leakVisit{v.Pointer(), v.Type()}
		if w.seen[visit] {
			return
		}
		w.seen[visit] = true
		w.walk(v.Elem(), at)
	case reflect.Interface:
		w.walk(v.Elem(), at)
	case reflect.Struct:
		// A kubelet reaches its runtime, which is looked at for itself.
		if !w.inside(v.Type()) || at != "" && v.Type() == reflect.TypeFor[fakecri.Runtime]() {
			return
		}
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if f := v.Field(i); f.Kind() == reflect.Map || f.Kind() == reflect.Slice {
				w.sizes[v.Type().String()+"."+name] += f.Len()
			}
			w.walk(v.Field(i), at+"."+name)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); { //drydock:unordered what is found is sorted
			if key, ok := w.ofGone(it.Key()); ok {
				w.tell(at, key, fmt.Sprint(it.Key()))
			} else if key, ok := w.named(it.Value()); ok {
				w.tell(at, key, fmt.Sprint(it.Key()))
			}
			w.walk(it.Value(), at+"[]")
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			if key, ok := w.named(v.Index(i)); ok {
				w.tell(at, key, key)
			}
			w.walk(v.Index(i), at+"[]")
		}
	}
}
