package parity

import (
	"context"
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/kubelet"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// NodeVolumesSeen is what the node's status said of volumes in use, and of attached ones by
// name and device path.
type NodeVolumesSeen struct {
	At       float64     `json:"at"`
	InUse    []string    `json:"inUse"`
	Attached [][2]string `json:"attached"`
}

// AttachmentSeen is a VolumeAttachment after a change.
type AttachmentSeen struct {
	At          float64  `json:"at"`
	Name        string   `json:"name"`
	Attached    bool     `json:"attached"`
	AttachError string   `json:"attachError,omitempty"`
	Finalizers  []string `json:"finalizers,omitempty"`
	Deleting    bool     `json:"deleting,omitempty"`
	Deleted     bool     `json:"deleted,omitempty"`
}

// ClaimSeen is the status of a claim, with its conditions by type and status.
type ClaimSeen struct {
	At         float64                       `json:"at"`
	Name       string                        `json:"name"`
	Phase      v1.PersistentVolumeClaimPhase `json:"phase"`
	Capacity   map[string]string             `json:"capacity"`
	Conditions [][2]string                   `json:"conditions"`
}

// seeStorage notes what the API says of volumes, each distinct state.
func (o *pluginObserver) seeStorage(c apiserver.Change) {
	at := o.pods.at(o.pods.c.API().Loop().Now())
	switch n := c.New.(type) {
	case *v1.Node:
		seen := NodeVolumesSeen{At: at, InUse: []string{}, Attached: [][2]string{}}
		for _, name := range n.Status.VolumesInUse {
			seen.InUse = append(seen.InUse, string(name))
		}
		for _, a := range n.Status.VolumesAttached {
			seen.Attached = append(seen.Attached, [2]string{string(a.Name), a.DevicePath})
		}
		last := NodeVolumesSeen{InUse: []string{}, Attached: [][2]string{}}
		if k := len(o.seen.NodeVolumes); k > 0 {
			last = o.seen.NodeVolumes[k-1]
		}
		last.At = at
		if !sameJSON(last, seen) {
			o.seen.NodeVolumes = append(o.seen.NodeVolumes, seen)
		}
	case *storagev1.VolumeAttachment:
		seen := AttachmentSeen{
			At: at, Name: hashed.ReplaceAllString(n.Name, "<id>"), Attached: n.Status.Attached, Finalizers: n.Finalizers,
			Deleting: n.DeletionTimestamp != nil, Deleted: c.Type == watch.Deleted,
		}
		if e := n.Status.AttachError; e != nil {
			seen.AttachError = e.Message
		}
		o.seen.Attachments = append(o.seen.Attachments, seen)
	case *v1.PersistentVolumeClaim:
		if c.Type == watch.Deleted {
			return
		}
		seen := ClaimSeen{At: at, Name: n.Name, Phase: n.Status.Phase, Conditions: [][2]string{}}
		for name, q := range n.Status.Capacity { //drydock:unordered fills a map
			if seen.Capacity == nil {
				seen.Capacity = map[string]string{}
			}
			seen.Capacity[string(name)] = q.String()
		}
		for _, condition := range n.Status.Conditions {
			seen.Conditions = append(seen.Conditions, [2]string{string(condition.Type), string(condition.Status)})
		}
		o.seen.ClaimsVolumes = append(o.seen.ClaimsVolumes, seen)
	}
}

const kubeletDir = "/var/lib/kubelet"

// directories are the snapshots of the files of pods and of CSI.
func (o *pluginObserver) directories() (pods map[string][]string, csi map[string]any) {
	pods = map[string][]string{}
	data := map[string]any{}
	var known []*v1.Pod
	if k := o.node.Kubelet(); k != nil {
		known = k.Pods()
	}
	for _, pod := range known {
		name := pod.Name
		dir := path.Join(kubeletDir, "pods", string(pod.UID))
		if list := o.files(dir, data); len(list) > 0 {
			pods[name] = list
		}
	}
	tree := map[string][]string{}
	dir := path.Join(kubeletDir, "plugins/kubernetes.io/csi")
	entries, _ := o.node.FS().ReadDir(dir)
	for _, e := range entries {
		tree[e.Name()] = o.files(path.Join(dir, e.Name()), data)
	}
	return pods, map[string]any{"tree": tree, "vol_data": data}
}

// files lists what is below a directory: files, links with where they lead, and directories
// that are empty. Notes of volumes are added to data.
func (o *pluginObserver) files(dir string, data map[string]any) []string {
	var out []string
	var walk func(name string)
	walk = func(name string) {
		entries, err := o.node.FS().ReadDir(path.Join(dir, name))
		if err != nil {
			return
		}
		if len(entries) == 0 {
			out = append(out, blurPaths(name+"/"))
		}
		for _, e := range entries {
			at := name + "/" + e.Name()
			switch {
			case name == "" && (e.Name() == "containers" || e.Name() == "etc-hosts"):
			case e.IsDir():
				walk(at)
			case e.Type()&fs.ModeSymlink != 0:
				to, _ := o.node.FS().Readlink(path.Join(dir, at))
				out = append(out, blurPaths(at+" -> "+to))
			default:
				out = append(out, blurPaths(at))
				o.note(path.Join(dir, at), data)
			}
		}
	}
	walk("")
	return out
}

// note adds what the kubelet noted of a volume.
func (o *pluginObserver) note(file string, data map[string]any) {
	// The recorder did not look for those of block devices.
	if path.Base(file) != "vol_data.json" || strings.Contains(file, "/volumeDevices/") {
		return
	}
	text, err := o.node.FS().ReadFile(file)
	var value any
	if err == nil && json.Unmarshal([]byte(blurPaths(string(text))), &value) == nil {
		data[strings.TrimPrefix(blurPaths(file), "<root-dir>")] = value
	}
}

// hasStats reports whether a driver of the case can tell how much there is in a volume.
func (c *PluginCase) hasStats() bool {
	return slices.ContainsFunc(c.Actions, func(a PluginAction) bool { return slices.Contains(a.Caps, "GET_VOLUME_STATS") })
}

// volumeStats are what the kubelet's summary says of the volumes of the case's pods.
func (o *pluginObserver) volumeStats(ctx context.Context, k *kubelet.Kubelet) map[string]any {
	s, err := k.Host().Summary(ctx, false)
	if err != nil {
		return nil
	}
	out := map[string]any{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if !slices.Contains(o.c.pods(), p.PodRef.Namespace+"/"+p.PodRef.Name) {
			continue
		}
		var list []object
		for _, v := range p.VolumeStats {
			var fields object
			if json.Unmarshal(encode(v), &fields) == nil {
				fields["time"] = "<time>"
				list = append(list, fields)
			}
		}
		out[p.PodRef.Name] = list
	}
	return out
}
