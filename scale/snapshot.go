package scale

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/drydock-sim/drydock/kubelet/noeffect"
	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Snapshot is the nodes and pods of a real cluster, as a state to begin with. It
// is a state and no history: uses, back-off and ages begin anew, and what refers
// to the cluster's outside is cut off, with a note. What it holds was cleaned up by settle: every
// pod could be created as it is.
type Snapshot struct {
	Nodes []*v1.Node
	Pods  []*v1.Pod
	// Static are static pods by their node, from their mirrors.
	Static map[string][]*v1.Pod
	// Controllers are ReplicaSets, StatefulSets, DaemonSets and Jobs, and after them Deployments: pods that
	// they select become theirs again.
	Controllers []apiserver.Object
	// Notes say what of the file is left out or taken otherwise, each once.
	Notes []string
}

// ReadSnapshot reads what `kubectl get nodes,pods -A -o yaml` or -o json prints:
// a List, or several documents. Unknown fields are passed over, since the cluster
// may be newer; objects of other kinds are left out. Errors are
// scenarios.LoadErrors. Unlike scenarios, which are strict: nobody wrote this file by hand, and a
// field that this version doesn't know is no mistake of the user's.
func ReadSnapshot(file string, in io.Reader) (*Snapshot, error) {
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	s := &Snapshot{}
	notes := map[string]int{}
	bad := func(format string, args ...any) (*Snapshot, error) {
		return nil, scenarios.LoadErrors{fileError(file, 0, format, args...)}
	}
	if err := s.read(file, data, notes); err != nil {
		return nil, scenarios.LoadErrors{err}
	}
	if len(s.Nodes) == 0 {
		return bad("there are no nodes in this file: it is to hold what `kubectl get nodes,pods -A -o yaml` prints")
	}
	s.settle(notes)
	for _, text := range slices.Sorted(maps.Keys(notes)) { //drydock:unordered sorted at once
		s.Notes = append(s.Notes, fmt.Sprintf("%s (%d)", text, notes[text]))
	}
	return s, nil
}

// read takes a file: JSON documents or a YAML stream. A JSON file is recognized by its brace. It
// goes through the JSON decoder document by document: YAML of a few hundred megabytes would take
// minutes.
func (s *Snapshot) read(file string, data []byte, notes map[string]int) *scenarios.LoadError {
	if t := bytes.TrimLeft(data, " \t\r\n"); len(t) == 0 || t[0] != '{' {
		for _, d := range documents(data) {
			doc, err := yaml.YAMLToJSON(d.text)
			if err != nil {
				return d.mistake(file, fmt.Errorf("bad YAML: %s", strings.TrimPrefix(err.Error(), "yaml: ")))
			}
			if err := s.add(doc, notes); err != nil {
				return d.mistake(file, err)
			}
		}
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		var doc json.RawMessage
		err := dec.Decode(&doc)
		end := int(dec.InputOffset())
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return fileError(file, bytes.Count(data, []byte("\n"))+1, "bad JSON: the file ends within a document")
		case err != nil:
			d := document{text: data, line: 1}
			return d.mistake(file, fmt.Errorf("bad JSON: %w", err))
		}
		if err := s.add(doc, notes); err != nil {
			// The line is counted only for an error.
			d := document{text: doc, line: bytes.Count(data[:end-len(doc)], []byte("\n")) + 1}
			return d.mistake(file, err)
		}
	}
}

// add takes one document: a list or an object. Lists may hold lists: kubectl prints one of
// several kinds as a List of objects.
func (s *Snapshot) add(doc []byte, notes map[string]int) error {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Items           []json.RawMessage `json:"items"`
	}
	if len(bytes.TrimSpace(doc)) == 0 || string(bytes.TrimSpace(doc)) == "null" {
		return nil
	}
	if err := json.Unmarshal(doc, &head); err != nil {
		// Which Go type was wanted helps nobody who reads this.
		return errors.New("is no Kubernetes object") // the error is about types of this program
	}
	switch {
	case head.Kind == "":
		return errors.New("is no Kubernetes object: it has no kind")
	case strings.HasSuffix(head.Kind, "List"):
		for i, item := range head.Items {
			if head.Kind != "List" { // of NodeList and PodList the items may name no kind
				var m struct{ Kind string }
				if json.Unmarshal(item, &m) == nil && m.Kind == "" {
					if err := s.object(strings.TrimSuffix(head.Kind, "List"), item, notes); err != nil {
						return inItem(i, err)
					}
					continue
				}
			}
			if err := s.add(item, notes); err != nil {
				return inItem(i, err)
			}
		}
		return nil
	}
	return s.object(head.Kind, doc, notes)
}

// object takes a node or a pod; other kinds are counted and left out. The errors name the object,
// since its line alone says little in a file of a million lines.
func (s *Snapshot) object(kind string, doc []byte, notes map[string]int) error {
	switch kind {
	case "Node":
		n := &v1.Node{}
		if err := json.Unmarshal(doc, n); err != nil {
			return fmt.Errorf("node%s: %w", nameOf(doc), fieldError(err))
		}
		if n.Name == "" {
			return errors.New("node: metadata.name: must be set")
		}
		s.Nodes = append(s.Nodes, n)
	case "Pod":
		p := &v1.Pod{}
		if err := json.Unmarshal(doc, p); err != nil {
			return fmt.Errorf("pod%s: %w", nameOf(doc), fieldError(err))
		}
		if p.Name == "" {
			return errors.New("pod: metadata.name: must be set")
		}
		s.Pods = append(s.Pods, p)
	case "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job":
		obj := newController(kind)
		if err := json.Unmarshal(doc, obj); err != nil {
			return fmt.Errorf("%s%s: %w", strings.ToLower(kind), nameOf(doc), fieldError(err))
		}
		s.Controllers = append(s.Controllers, obj)
	default:
		notes["objects of other kinds than Node, Pod, Deployment, ReplicaSet, StatefulSet, DaemonSet and Job are left out"]++
	}
	return nil
}

// nameOf is the name of an object that can't be read, if it has one, with a space
// before it. It decodes what little it needs, leniently.
func nameOf(doc []byte) string {
	var head struct {
		Metadata struct{ Namespace, Name string }
	}
	if json.Unmarshal(doc, &head) != nil || head.Metadata.Name == "" {
		return ""
	}
	if ns := head.Metadata.Namespace; ns != "" {
		return " " + ns + "/" + head.Metadata.Name
	}
	return " " + head.Metadata.Name
}

// fieldError says of an error of decoding which field is wrong, and how. The json package reports
// the Go struct and a dotted path; the path becomes one to look up in the document.
func fieldError(err error) error {
	var e *json.UnmarshalTypeError
	if !errors.As(err, &e) {
		return err
	}
	// The field is preceded by the name of the Go type that has it.
	_, field, _ := strings.Cut(e.Field, ".")
	if field == "" || e.Struct == "" || !strings.HasPrefix(e.Field, e.Struct) {
		field = e.Field
	}
	return &placed{strings.Split(field, "."), fmt.Errorf("%s: is a %s; want %s", field, e.Value, e.Type)}
}

// annotationMirror marks mirror pods (pkg/kubelet/types ConfigMirrorAnnotationKey).
const annotationMirror = "kubernetes.io/config.mirror"

// hosts has a container's probes and hooks ask the pod itself: the addresses that
// they name are those of the real cluster. A probe of another host would fail here, and a pod
// that was ready there would never be.
func hosts(c *v1.Container, notes map[string]int) {
	clear := func(h *v1.HTTPGetAction, t *v1.TCPSocketAction) {
		if h != nil && h.Host != "" || t != nil && t.Host != "" {
			notes["probes and hooks name hosts: they ask their pods"]++
		}
		if h != nil {
			// An empty host is the pod's own IP (core/v1 HTTPGetAction).
			h.Host = ""
		}
		if t != nil {
			t.Host = ""
		}
	}
	for _, p := range []*v1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		if p != nil {
			clear(p.HTTPGet, p.TCPSocket)
		}
	}
	if c.Lifecycle == nil {
		return
	}
	for _, h := range []*v1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if h != nil {
			clear(h.HTTPGet, h.TCPSocket)
		}
	}
}

// settle leaves out what is no state to begin with. The order matters: nodes first, since pods
// are judged by them; static pods are found by their mirrors; at last every pod is stripped to
// what a client would have sent.
func (s *Snapshot) settle(notes map[string]int) {
	nodes := map[string]bool{}
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n *v1.Node) bool {
		if nodes[n.Name] {
			notes["nodes are there twice"]++
			return true
		}
		nodes[n.Name] = true
		// A node without conditions is one that somebody wrote by hand.
		if len(n.Status.Conditions) > 0 && !isReady(n) {
			notes["nodes are not ready: they are taken as ready"]++
		}
		if cpu, memory := n.Status.Capacity[v1.ResourceCPU], n.Status.Capacity[v1.ResourceMemory]; cpu.IsZero() || memory.IsZero() {
			notes["nodes don't tell their capacity: what is missing is of a machine with 4 CPUs and 16Gi"]++
		}
		return false
	})
	s.Static = map[string][]*v1.Pod{}
	pods := map[string]bool{}
	s.Pods = slices.DeleteFunc(s.Pods, func(p *v1.Pod) bool {
		p.Namespace = cmp.Or(p.Namespace, metav1.NamespaceDefault)
		key := p.Namespace + "/" + p.Name
		why := ""
		switch {
		case pods[key]:
			why = "pods are there twice"
		case p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed:
			why = "pods that have ended are left out"
		case p.DeletionTimestamp != nil:
			why = "pods that are being deleted are left out"
		case p.Annotations[annotationMirror] != "" && !nodes[p.Spec.NodeName]:
			why = "mirror pods of nodes that are not in the file are left out"
		}
		pods[key] = true
		if why != "" {
			notes[why]++
			return true
		}
		// The mirror tells of a pod from a file on its node; here the file is made again, and the
		// kubelet will make a mirror of its own.
		if p.Annotations[annotationMirror] != "" {
			s.Static[p.Spec.NodeName] = append(s.Static[p.Spec.NodeName], static(p, notes))
			return true
		}
		if p.Spec.NodeName != "" && !nodes[p.Spec.NodeName] {
			notes["pods are on nodes that are not in the file: they are scheduled anew"]++
			p.Spec.NodeName = ""
		}
		return false
	})
	s.settleControllers(notes)
	for _, p := range s.Pods {
		if owner := metav1.GetControllerOfNoCopy(p); owner != nil && s.hasController(owner.Kind, p.Namespace, owner.Name) {
			p.OwnerReferences = nil // it will be adopted
		}
		strip(p, notes)
	}
}

// static is the manifest that a mirror pod is of. A mirror's name is the manifest's with the
// node's appended (pkg/kubelet/config/common.go generatePodName); the annotations are those that
// the kubelet adds on reading the file.
func static(p *v1.Pod, notes map[string]int) *v1.Pod {
	strip(p, notes)
	p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	p.Name = strings.TrimSuffix(p.Name, "-"+p.Spec.NodeName)
	p.Spec.NodeName = ""
	p.Annotations = maps.Clone(p.Annotations)
	for _, a := range []string{annotationMirror, "kubernetes.io/config.hash", "kubernetes.io/config.seen", "kubernetes.io/config.source"} {
		delete(p.Annotations, a)
	}
	return p
}

// strip brings a pod to what a client would create it from. UIDs, versions, owners and status are
// the API server's to give; a pod that kept its owner would be collected as an orphan.
func strip(p *v1.Pod, notes map[string]int) {
	if len(p.OwnerReferences) > 0 && p.Annotations[annotationMirror] == "" {
		notes["pods belong to controllers that are not there: what ends is not replaced"]++
	}
	p.ObjectMeta = metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, Labels: p.Labels, Annotations: p.Annotations}
	p.Status = v1.PodStatus{}
	if len(p.Spec.EphemeralContainers) > 0 {
		notes["ephemeral containers are left out"]++
		// Ephemeral containers cannot be created with a pod, only added through their subresource.
		p.Spec.EphemeralContainers = nil
	}
	if len(p.Spec.SchedulingGates) > 0 {
		notes["pods have scheduling gates, and who would remove them is not there: they are scheduled"]++
		p.Spec.SchedulingGates = nil
	}
	if len(p.Spec.ResourceClaims) > 0 {
		notes["pods claim devices, which a snapshot doesn't have: they run without"]++
		p.Spec.ResourceClaims = nil
	}
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			list[i].Resources.Claims = nil
			hosts(&list[i], notes)
			list[i].VolumeDevices = nil // they are of volumes that become directories
		}
	}
	for i := range p.Spec.Volumes {
		stripVolume(&p.Spec.Volumes[i], notes)
	}
	for _, what := range noeffect.Unsupported(p) {
		_, what, _ = strings.Cut(what, ": ") // the field differs from pod to pod
		notes["pods ask for what is not there: "+what]++
	}
	// The API server's own volume has a random name in each pod; with one name,
	// pods of one template share a spec.
	for i := range p.Spec.Volumes {
		old := p.Spec.Volumes[i].Name
		if !strings.HasPrefix(old, "kube-api-access-") {
			continue
		}
		p.Spec.Volumes[i].Name = "kube-api-access"
		for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for k := range list {
				for m := range list[k].VolumeMounts {
					if list[k].VolumeMounts[m].Name == old {
						list[k].VolumeMounts[m].Name = "kube-api-access"
					}
				}
			}
		}
	}
}

// stripVolume has a volume need nothing that is not in the file. Hostpath checks of type Socket
// or CharDevice cannot pass on a node whose file system is empty (pkg/volume/hostpath). Claims
// and drivers need objects that the file doesn't have.
func stripVolume(v *v1.Volume, notes map[string]int) {
	switch h := v.HostPath; {
	case h != nil && h.Type != nil:
		made := v1.HostPathUnset // instead of a socket or a device
		switch *h.Type {
		case v1.HostPathUnset, v1.HostPathDirectoryOrCreate, v1.HostPathFileOrCreate:
			return
		case v1.HostPathDirectory:
			made = v1.HostPathDirectoryOrCreate
		case v1.HostPathFile:
			made = v1.HostPathFileOrCreate
		}
		h.Type = &made
		notes["volumes want files, directories, sockets or devices of their node: empty ones are made"]++
	case h != nil, v.EmptyDir != nil, v.ConfigMap != nil, v.Secret != nil, v.DownwardAPI != nil, v.Projected != nil, v.Image != nil:
	default:
		notes["volumes of storage outside the node are taken as empty directories"]++
		v.VolumeSource = v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}
	}
}
