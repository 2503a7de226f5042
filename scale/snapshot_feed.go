package scale

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// evictionMemory is the default hard eviction threshold of memory.available,
// which allocatable is without (pkg/kubelet/apis/config/v1beta1/defaults_linux.go). A
// configuration with other thresholds makes allocatable differ by as much, which is then the
// user's wish.
const evictionMemory = 100 << 20

// ownTaint tells which taints the node lifecycle controller and the kubelet set by
// themselves. They would be stale: the node is healthy here, and nobody would take them away
// before its first heartbeat.
func ownTaint(t *v1.Taint) bool {
	switch t.Key {
	case v1.TaintNodeNotReady, v1.TaintNodeUnreachable, v1.TaintNodeUnschedulable, v1.TaintNodeMemoryPressure, v1.TaintNodeDiskPressure,
		v1.TaintNodePIDPressure, v1.TaintNodeNetworkUnavailable:
		return true
	}
	return false
}

// addNodes adds the nodes: their capacity, labels, taints, images, and what is
// reserved, so that allocatable is what it was. Images are those of the node's status, which
// lists at most 50 (nodeStatusMaxImages), and those that its pods name: whatever ran there was
// there.
func (s *Snapshot) addNodes(r *driver) error {
	on := map[string][]string{}
	for _, n := range s.Nodes {
		for _, p := range s.Static[n.Name] {
			on[n.Name] = append(on[n.Name], imagesOf(&p.Spec)...)
		}
	}
	for _, p := range s.Pods {
		if p.Spec.NodeName != "" {
			on[p.Spec.NodeName] = append(on[p.Spec.NodeName], imagesOf(&p.Spec)...)
		}
	}
	cordoned := map[string]bool{}
	more := r.images()
	for _, n := range s.Nodes {
		opts := sim.NodeOptions{
			Name: n.Name, Labels: n.Labels, Capacity: capacity(n), Kubelet: reserve(r.cfg.Kubelet, n),
			Taints:  slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t v1.Taint) bool { return ownTaint(&t) }),
			Runtime: fakecri.Options{Images: addImages(append(nodeImages(n), more...), on[n.Name]), Behave: r.behave},
		}
		for i := range opts.Taints {
			// A NoExecute taint counts tolerations from it (pkg/controller/tainteviction); a time
			// of the real cluster would be nonsense on this clock.
			opts.Taints[i].TimeAdded = nil
		}
		node, err := r.cluster.AddNode(opts)
		if err != nil {
			return err
		}
		for _, p := range s.Static[n.Name] {
			manifest, err := json.Marshal(p)
			if err == nil {
				err = node.WriteStaticPod(p.Namespace+"-"+p.Name+".json", manifest)
			}
			if err != nil {
				return fmt.Errorf("static pod %s/%s: %w", p.Namespace, p.Name, err)
			}
		}
		cordoned[n.Name] = n.Spec.Unschedulable
	}
	// spec.unschedulable is nothing that a kubelet registers with unless told; it is set as
	// kubectl cordon would, once the node's object is there.
	r.cluster.API().OnChange(func(c apiserver.Change) {
		n := c.New.(*v1.Node)
		if c.Type == watch.Added && cordoned[n.Name] {
			cordon := *n
			cordon.Spec.Unschedulable = true
			if _, err := r.cluster.API().Update(&cordon, ""); err != nil {
				r.warn(fmt.Sprintf("node %s: %v", n.Name, err))
			}
		}
	}, apiserver.KindNode)
	return nil
}

// capacity is what the machine has; attachable volumes are limits of drivers that
// are not there. attachable-volumes-* comes from CSI drivers, which are not simulated.
func capacity(n *v1.Node) v1.ResourceList {
	out := v1.ResourceList{}
	for name, q := range n.Status.Capacity { //drydock:unordered each key is set once
		if !strings.HasPrefix(string(name), v1.ResourceAttachableVolumesPrefix) {
			out[name] = q
		}
	}
	return out
}

// reserve has the kubelet keep what the node's capacity has and its allocatable
// has not. Allocatable is capacity without kubeReserved, systemReserved and the hard eviction
// threshold (pkg/kubelet/cm/node_container_manager_linux.go). A configuration that reserves
// something itself is left alone.
func reserve(base *kubeletconfig.KubeletConfiguration, n *v1.Node) *kubeletconfig.KubeletConfiguration {
	if base != nil && (len(base.KubeReserved) > 0 || len(base.SystemReserved) > 0) {
		return base
	}
	reserved := map[string]string{}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		has, left := n.Status.Capacity[name], n.Status.Allocatable[name]
		has.Sub(left)
		// A node that doesn't tell allocatable gets what follows from the configuration.
		if left.IsZero() {
			continue
		}
		if name == v1.ResourceMemory {
			has.Sub(*resource.NewQuantity(evictionMemory, resource.BinarySI))
		}
		if has.Sign() > 0 {
			reserved[string(name)] = has.String()
		}
	}
	if len(reserved) == 0 {
		return base
	}
	out := &kubeletconfig.KubeletConfiguration{}
	if base != nil {
		out = base.DeepCopy()
	}
	out.KubeReserved = reserved
	return out
}

// nodeImages are the images that the node's status tells of. The kubelet lists digests before
// tags; the last name is the most readable. "<none>" stands for a missing tag and is no name.
func nodeImages(n *v1.Node) []fakecri.Image {
	var out []fakecri.Image
	for i := range n.Status.Images {
		im := &n.Status.Images[i]
		names := slices.DeleteFunc(slices.Clone(im.Names), func(s string) bool { return strings.Contains(s, "<none>") })
		if len(names) == 0 {
			continue
		}
		x := fakecri.Image{Name: names[len(names)-1], Aliases: names[:len(names)-1], Size: im.SizeBytes, Present: true}
		if x.Validate() == nil {
			out = append(out, x)
		}
	}
	return out
}

// snapshotFeed creates a snapshot's pods where they were. stamps is dropped when the pods were
// created: the specs live on in the templates.
type snapshotFeed struct {
	r      *driver
	s      *Snapshot
	stamps []stamped
	// init: init containers that end: namespace/pod/container.
	init map[string]bool
	mine map[string]bool // pods: namespace/name
}

// stamped is a pod to be created: a template that others share, and what is its
// own. A million pods are as many names and labels, and a few hundred templates.
type stamped struct {
	t     *apiserver.Template
	stamp apiserver.Stamp
}

// prepare makes what pods refer to, writes static pods' manifests, and has the
// API look at each pod. Pods that differ by name only share a template. The spec as JSON is the
// key: what differs there cannot share a template. Node name and priority are taken out first:
// the name is stamped on, and the priority follows from the class.
func (f *snapshotFeed) prepare() error {
	f.init, f.mine = map[string]bool{}, map[string]bool{}
	templates := map[string]*apiserver.Template{}
	needs := newNeeds(f.r)
	for _, n := range f.s.Nodes {
		for _, p := range f.s.Static[n.Name] {
			f.note(p, p.Name+"-"+n.Name)
			if err := f.r.namespace(p.Namespace); err != nil {
				return err
			}
		}
	}
	for _, p := range f.s.Pods {
		if err := f.r.namespace(p.Namespace); err != nil {
			return err
		}
		needs.meet(p)
		pod := *p
		pod.Spec.NodeName, pod.Spec.Priority = "", nil
		key, err := json.Marshal(pod.Spec)
		if err != nil {
			return fmt.Errorf("pod %s/%s: %w", p.Namespace, p.Name, err)
		}
		k := p.Namespace + "\x00" + string(key)
		if templates[k] == nil {
			t, err := f.r.cluster.API().NewTemplate(&pod)
			if err != nil {
				// A pod that this API server refuses is left out; the rest of the cluster is
				// worth running.
				f.r.failed(p.Namespace, p.Name, err)
				continue
			}
			templates[k] = t
		}
		f.note(p, p.Name)
		labels, annotations := p.Labels, p.Annotations
		if labels == nil {
			// Labels that are nil would mean those of the template.
			labels = map[string]string{}
		}
		if annotations == nil {
			annotations = map[string]string{}
		}
		f.stamps = append(f.stamps, stamped{templates[k], apiserver.Stamp{Name: p.Name, NodeName: p.Spec.NodeName, Labels: labels, Annotations: annotations}})
	}
	return nil
}

// note keeps what behave needs to know. Sidecars are init containers that don't end (KEP-753).
func (f *snapshotFeed) note(p *v1.Pod, name string) {
	key := p.Namespace + "/" + name
	f.mine[key] = true
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.RestartPolicy == nil || *c.RestartPolicy != v1.ContainerRestartPolicyAlways {
			f.init[key+"/"+c.Name] = true
		}
	}
}

// begin creates all pods at one instant: they were there already, and the
// scheduler is not asked. They are created bound, without regard to whether they fit: kubelets
// may reject some, as they would after a restart.
func (f *snapshotFeed) begin() {
	for _, s := range f.stamps {
		if _, err := f.r.cluster.API().CreateFromTemplate(s.t, s.stamp); err != nil {
			f.r.failed(s.t.Pod().Namespace, s.stamp.Name, err)
			continue
		}
		f.r.result.Created++
	}
	f.stamps = nil
	if len(f.s.Controllers) > 0 {
		f.control()
	}
}

// steady does nothing: a snapshot has no future.
func (f *snapshotFeed) steady() {}

// behave has init containers end and everything else run: commands of images
// that nobody has are not interpreted. An init container takes a second; the snapshot doesn't
// tell how long it took.
func (f *snapshotFeed) behave(pod *runtimeapi.PodSandboxConfig, container *runtimeapi.ContainerConfig) *fakecri.Behaviour {
	key := pod.Metadata.Namespace + "/" + pod.Metadata.Name
	switch {
	case !f.mine[key]:
		return nil
	case f.init[key+"/"+container.Metadata.Name]:
		return &fakecri.Behaviour{RunFor: fakecri.Exactly(time.Second)}
	}
	return &fakecri.Behaviour{}
}

// needs makes what pods refer to and the file does not hold. A pod whose secret
// is missing would wait for ever, which it did not in the cluster. Objects of a snapshot's own
// would be better; kubectl get nodes,pods does not print them, and secrets should not be in such
// a file.
type needs struct {
	r    *driver
	made map[string]bool
	// data: of configMaps and secrets: keys.
	data map[string]map[string]bool
}

func newNeeds(r *driver) *needs {
	return &needs{r: r, made: map[string]bool{}, data: map[string]map[string]bool{}}
}

// meet makes the objects that a pod needs. A pod of a class that is not there would be refused by
// admission (plugin/pkg/admission/priority), as would an unknown runtime class.
func (n *needs) meet(p *v1.Pod) {
	if class := p.Spec.PriorityClassName; class != "" {
		c := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class}, PreemptionPolicy: p.Spec.PreemptionPolicy}
		if p.Spec.Priority != nil {
			c.Value = *p.Spec.Priority
		}
		n.make(apiserver.KindPriorityClass, "", class, c)
	} else {
		// Priority admission sets it; a client may not name one without a class.
		p.Spec.PreemptionPolicy = nil
	}
	if class := p.Spec.RuntimeClassName; class != nil {
		c := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: *class}, Handler: "runc"}
		if p.Spec.Overhead != nil {
			c.Overhead = &nodev1.Overhead{PodFixed: p.Spec.Overhead}
		}
		n.make(apiserver.KindRuntimeClass, "", *class, c)
	}
	n.configs(p)
}

// configs makes the configMaps and secrets that a pod needs. Optional references get their
// objects too: in the cluster they may have been there.
func (n *needs) configs(p *v1.Pod) {
	for _, ref := range p.Spec.ImagePullSecrets {
		n.keys(apiserver.KindSecret, p.Namespace, ref.Name, nil)
	}
	for _, v := range p.Spec.Volumes {
		switch {
		case v.ConfigMap != nil:
			n.keys(apiserver.KindConfigMap, p.Namespace, v.ConfigMap.Name, v.ConfigMap.Items)
		case v.Secret != nil:
			n.keys(apiserver.KindSecret, p.Namespace, v.Secret.SecretName, v.Secret.Items)
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				if s.ConfigMap != nil {
					n.keys(apiserver.KindConfigMap, p.Namespace, s.ConfigMap.Name, s.ConfigMap.Items)
				}
				if s.Secret != nil {
					n.keys(apiserver.KindSecret, p.Namespace, s.Secret.Name, s.Secret.Items)
				}
			}
		}
	}
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			n.environment(p.Namespace, &list[i])
		}
	}
}

// environment makes what a container's variables come from. A key that is asked for must exist,
// or the container fails with CreateContainerConfigError.
func (n *needs) environment(namespace string, c *v1.Container) {
	for _, e := range c.EnvFrom {
		if e.ConfigMapRef != nil {
			n.keys(apiserver.KindConfigMap, namespace, e.ConfigMapRef.Name, nil)
		}
		if e.SecretRef != nil {
			n.keys(apiserver.KindSecret, namespace, e.SecretRef.Name, nil)
		}
	}
	for _, e := range c.Env {
		if from := e.ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
			n.keys(apiserver.KindConfigMap, namespace, from.ConfigMapKeyRef.Name, []v1.KeyToPath{{Key: from.ConfigMapKeyRef.Key}})
		} else if from != nil && from.SecretKeyRef != nil {
			n.keys(apiserver.KindSecret, namespace, from.SecretKeyRef.Name, []v1.KeyToPath{{Key: from.SecretKeyRef.Key}})
		}
	}
}

// make creates an object unless there is one.
func (n *needs) make(k apiserver.Kind, namespace, name string, obj apiserver.Object) {
	id := string(k) + "/" + namespace + "/" + name
	if n.made[id] {
		return
	}
	n.made[id] = true
	if _, err := n.r.cluster.API().Get(k, namespace, name); err == nil {
		return
	}
	if _, err := n.r.cluster.API().Create(obj); err != nil {
		n.r.warn(fmt.Sprintf("%s %s: %v", k, name, err))
	}
}

// keys makes a configMap or secret with empty values for the keys asked for. Apply replaces the
// object with one that has all keys asked for so far.
func (n *needs) keys(k apiserver.Kind, namespace, name string, items []v1.KeyToPath) {
	id := string(k) + "/" + namespace + "/" + name
	have := n.data[id]
	grown := have == nil
	if have == nil {
		have = map[string]bool{}
		n.data[id] = have
	}
	for _, it := range items {
		grown = grown || !have[it.Key]
		have[it.Key] = true
	}
	if !grown || name == "" {
		return
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	var obj apiserver.Object
	if k == apiserver.KindSecret {
		s := &v1.Secret{ObjectMeta: meta, Data: map[string][]byte{}}
		for _, key := range slices.Sorted(maps.Keys(have)) { //drydock:unordered sorted at once
			s.Data[key] = []byte{}
		}
		obj = s
	} else {
		c := &v1.ConfigMap{ObjectMeta: meta, Data: map[string]string{}}
		for _, key := range slices.Sorted(maps.Keys(have)) { //drydock:unordered sorted at once
			c.Data[key] = ""
		}
		obj = c
	}
	if _, err := n.r.cluster.API().Apply(obj); err != nil {
		n.r.warn(fmt.Sprintf("%s %s/%s: %v", k, namespace, name, err))
	}
}
