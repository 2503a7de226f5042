package parity

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// PluginObservation is what was seen of one run of a case with plugins. Its JSON is that
// of recordings.
type PluginObservation struct {
	Pods      map[string]*PodObservation `json:"pods"`
	Plugins   []PluginCall               `json:"plugins"`
	Resources []ResourcesSeen            `json:"resources,omitempty"`
	CSINode   []CSINodeSeen              `json:"csiNode,omitempty"`
	Tokens    []TokenSeen                `json:"tokenRequests,omitempty"`
	Snapshots []SnapshotSeen             `json:"snapshots,omitempty"`
	Slices    []SliceSeen                `json:"resourceSlices,omitempty"`
	// What CSI shows besides.
	NodeVolumes   []NodeVolumesSeen `json:"nodeVolumes,omitempty"`
	Attachments   []AttachmentSeen  `json:"volumeAttachments,omitempty"`
	ClaimsVolumes []ClaimSeen       `json:"claimsVolumes,omitempty"`
}

// PluginCall is a call to a plugin, or of one.
type PluginCall struct {
	At     float64         `json:"at"`
	Took   float64         `json:"took"`
	Plugin string          `json:"plugin"`
	Method string          `json:"method"`
	Req    json.RawMessage `json:"req,omitempty"`
	Resp   json.RawMessage `json:"resp,omitempty"`
	Code   string          `json:"code,omitempty"`
	Err    string          `json:"err,omitempty"`
}

// ResourcesSeen is what the node's status said of the plugins' resources, by name.
type ResourcesSeen struct {
	At        float64                 `json:"at"`
	Resources map[string]CapacitySeen `json:"resources"`
}

// CapacitySeen is the node's amount of a resource.
type CapacitySeen struct {
	Capacity    string `json:"capacity,omitempty"`
	Allocatable string `json:"allocatable,omitempty"`
}

// SliceSeen is a ResourceSlice of the case's driver that came or went.
type SliceSeen struct {
	At   float64 `json:"at"`
	What string  `json:"what"`
	Name string  `json:"name"`
}

// TokenSeen is a TokenRequest of the kubelet's. ExpiresAfter is in seconds.
type TokenSeen struct {
	At             float64                            `json:"at"`
	ServiceAccount string                             `json:"serviceAccount"`
	Spec           *authenticationv1.TokenRequestSpec `json:"spec"`
	Code           int                                `json:"code"`
	ExpiresAfter   int                                `json:"expiresAfter,omitempty"`
}

// SnapshotSeen is what was read at a moment.
type SnapshotSeen struct {
	At    float64         `json:"at"`
	What  string          `json:"what"`
	Value json.RawMessage `json:"value"`
}

// ConfigSeen is what plugins and volumes put into CreateContainer.
type ConfigSeen struct {
	Mounts      []MountSeen       `json:"mounts,omitempty"`
	Devices     []object          `json:"devices,omitempty"`
	CDIDevices  []object          `json:"CDI_devices,omitempty"`
	Envs        []object          `json:"envs,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// MountSeen is a mount of a container.
type MountSeen struct {
	ContainerPath string `json:"container_path"`
	HostPath      string `json:"host_path"`
	Readonly      bool   `json:"readonly,omitempty"`
	Propagation   string `json:"propagation,omitempty"`
}

// pluginObserver sees what the recorder saw, each on the loop where it happens.
type pluginObserver struct {
	c       *PluginCase
	node    *sim.Node
	pods    *observer
	created map[createdKey]*ConfigSeen
	seen    PluginObservation
}

type createdKey struct {
	pod, container string
	attempt        int
}

func newPluginObserver(c *PluginCase, cl *sim.Cluster, n *sim.Node, warn func(string)) *pluginObserver {
	o := &pluginObserver{c: c, node: n, pods: newObserver(cl, pluginsUpBefore, warn), created: map[createdKey]*ConfigSeen{}}
	o.pods.plugins = true
	cl.API().OnChange(o.change, apiserver.KindNode, apiserver.KindResourceSlice)
	cl.API().OnChange(o.seeCSINode, apiserver.KindCSINode)
	cl.API().OnChange(o.seeStorage, apiserver.KindNode, apiserver.KindPersistentVolumeClaim, apiserver.KindVolumeAttachment)
	cl.API().Tokens().Observe = o.seeToken
	for at := time.Duration(0); at <= c.watched(); at += snapshots {
		n.At(pluginsUpBefore+at, o.snapshot)
	}
	return o
}

// result is what was seen.
func (o *pluginObserver) result() *PluginObservation {
	o.seen.Pods = o.pods.result(true).Pods
	if o.seen.Pods == nil {
		o.seen.Pods = map[string]*PodObservation{}
	}
	for name, p := range o.seen.Pods { //drydock:unordered each is on its own
		for i := range p.Status {
			p.Status[i].UID = "" // objects of one name are not told apart
		}
		for i := range p.Events {
			p.Events[i].Message = blurPaths(p.Events[i].Message)
		}
		for i := range p.CRI {
			call := &p.CRI[i]
			if call.Method == "CreateContainer" && call.Attempt != nil {
				call.Config = o.created[createdKey{name, call.Container, *call.Attempt}]
			}
		}
	}
	slices.SortStableFunc(o.seen.Plugins, func(a, b PluginCall) int { return cmp.Compare(a.At, b.At) })
	if o.seen.Plugins == nil {
		o.seen.Plugins = []PluginCall{}
	}
	return &o.seen
}

// seeCall notes a call of a plugin.
func (o *pluginObserver) seeCall(c plugins.Call) {
	if o == nil || c.At.Before(o.pods.zero) {
		return
	}
	seen := PluginCall{At: o.pods.at(c.At), Took: math.Round(c.Took.Seconds()*100) / 100, Plugin: c.Plugin, Method: c.Method, Req: protoJSON(c.Req), Resp: protoJSON(c.Resp)}
	if c.Err != nil {
		s := status.Convert(c.Err)
		seen.Code, seen.Err = s.Code().String(), s.Message()
	}
	o.seen.Plugins = append(o.seen.Plugins, seen)
}

// protoJSON is a message as recordings have it, blurred; nil: there is none, or it is
// empty.
func protoJSON(m proto.Message) json.RawMessage {
	if m == nil || !m.ProtoReflect().IsValid() {
		return nil
	}
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil || string(data) == "{}" {
		return nil
	}
	return json.RawMessage(blurPaths(string(data)))
}

var (
	// What differs in tokens that drivers are given.
	webToken     = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+`)
	expiration   = regexp.MustCompile(`(expirationTimestamp\\?":\\?")[^"\\]+`)
	accessVolume = regexp.MustCompile(`kube-api-access-[a-z0-9]{5}\b`)
	// Its digits may have been blurred by the case's own commands.
	// hashed is what stands for a volume in paths and names.
	hashed  = regexp.MustCompile(`[0-9a-f]{64}`)
	dataDir = regexp.MustCompile(`\.\.[0-9#]{4}_[0-9#_]+\.[0-9#]+`)
)

// blurPaths replaces what differs from machine to machine, as recordings do.
func blurPaths(s string) string {
	s = uuid.ReplaceAllString(s, "<uid>")
	s = hashed.ReplaceAllString(s, "<id>")
	s = accessVolume.ReplaceAllString(s, "kube-api-access-<x>")
	s = webToken.ReplaceAllString(s, "<token>")
	s = expiration.ReplaceAllString(s, "$1<time>")
	s = dataDir.ReplaceAllString(s, "<data-dir>")
	s = strings.ReplaceAll(s, "/var/lib/kubelet/device-plugins", "<device-plugins>")
	s = strings.ReplaceAll(s, "/var/lib/kubelet", "<root-dir>")
	return strings.ReplaceAll(s, pluginDir, "<plugin-dir>")
}

// seeCreated notes what a container was made with.
func (o *pluginObserver) seeCreated(c sim.Created) {
	seen := &ConfigSeen{}
	for _, m := range c.Config.Mounts {
		if m.ContainerPath == "/etc/hosts" || strings.Contains(m.HostPath, "/containers/") {
			continue // the kubelet's own
		}
		s := MountSeen{ContainerPath: m.ContainerPath, HostPath: blurPaths(m.HostPath), Readonly: m.Readonly}
		if m.Propagation != 0 {
			s.Propagation = m.Propagation.String()
		}
		seen.Mounts = append(seen.Mounts, s)
	}
	for _, d := range c.Config.Devices {
		seen.Devices = append(seen.Devices, object{"container_path": d.ContainerPath, "host_path": blurPaths(d.HostPath), "permissions": d.Permissions})
	}
	for _, d := range c.Config.CDIDevices {
		seen.CDIDevices = append(seen.CDIDevices, object{"name": d.Name})
	}
	for _, e := range c.Config.Envs {
		if strings.HasPrefix(e.Key, "DEV_") {
			seen.Envs = append(seen.Envs, object{"key": e.Key, "value": string(e.Value)})
		}
	}
	for k, v := range c.Config.Annotations { //drydock:unordered fills a map
		if strings.HasPrefix(k, "plugin.test/") {
			if seen.Annotations == nil {
				seen.Annotations = map[string]string{}
			}
			seen.Annotations[k] = v
		}
	}
	if !reflect.DeepEqual(seen, &ConfigSeen{}) {
		o.created[createdKey{c.Pod, c.Config.Metadata.Name, int(c.Config.Metadata.Attempt)}] = seen
	}
}

// change notes what the node's status says of the case's resources.
func (o *pluginObserver) change(c apiserver.Change) {
	o.seeSlice(c)
	n, ok := c.New.(*v1.Node)
	if !ok {
		return
	}
	seen := ResourcesSeen{At: o.pods.at(o.pods.c.API().Loop().Now()), Resources: map[string]CapacitySeen{}}
	for _, name := range o.c.Plugins {
		capacity, ok := n.Status.Capacity[v1.ResourceName(name)]
		if !ok {
			continue
		}
		s := CapacitySeen{Capacity: capacity.String()}
		if a, ok := n.Status.Allocatable[v1.ResourceName(name)]; ok {
			s.Allocatable = a.String()
		}
		seen.Resources[name] = s
	}
	if len(seen.Resources) == 0 {
		return
	}
	if k := len(o.seen.Resources); k > 0 && reflect.DeepEqual(o.seen.Resources[k-1].Resources, seen.Resources) {
		return
	}
	o.seen.Resources = append(o.seen.Resources, seen)
}

// seeSlice notes what a driver of the case offers, and no longer does.
func (o *pluginObserver) seeSlice(c apiserver.Change) {
	s, ok := c.New.(*resourcev1.ResourceSlice)
	if !ok || !slices.Contains(o.c.Plugins, s.Spec.Driver) {
		return
	}
	o.seen.Slices = append(o.seen.Slices, SliceSeen{o.pods.at(o.pods.c.API().Loop().Now()), strings.ToLower(string(c.Type)), s.Name})
}

// seeToken notes a request for a token that names a pod.
func (o *pluginObserver) seeToken(_, account string, asked, answer *authenticationv1.TokenRequest, err error) {
	if asked.Spec.BoundObjectRef == nil {
		return
	}
	now := o.pods.c.API().Loop().Now()
	seen := TokenSeen{At: o.pods.at(now), ServiceAccount: account, Spec: asked.Spec.DeepCopy(), Code: 201}
	if seen.Spec.ExpirationSeconds == nil {
		seen.Spec.ExpirationSeconds = ptr.To[int64](3600) // the API's default
	}
	seen.Spec.BoundObjectRef.UID = "<uid>"
	var refused apierrors.APIStatus
	switch {
	case err == nil:
		seen.ExpiresAfter = int(math.Floor(answer.Status.ExpirationTimestamp.Sub(now).Seconds()))
	case asStatus(err, &refused):
		seen.Code = int(refused.Status().Code)
	}
	o.seen.Tokens = append(o.seen.Tokens, seen)
}

func asStatus(err error, out *apierrors.APIStatus) bool {
	s, ok := err.(apierrors.APIStatus) //nolint:errorlint // it is the store's own
	*out = s
	return ok
}

// snapshot reads what the recorder read at moments of its own: here at each second.
func (o *pluginObserver) snapshot() {
	at := o.pods.at(o.node.Loop().Now())
	add := func(what string, value any) {
		data, ok := value.(json.RawMessage)
		if !ok {
			data = encode(value)
		}
		o.seen.Snapshots = append(o.seen.Snapshots, SnapshotSeen{at, what, data})
	}
	if data, err := o.node.FS().ReadFile("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"); err == nil {
		var checkpoint struct {
			Data struct {
				PodDeviceEntries  []object
				RegisteredDevices map[string][]string
			}
			Checksum any
		}
		if json.Unmarshal(data, &checkpoint) == nil {
			for _, e := range checkpoint.Data.PodDeviceEntries {
				e["PodUID"], e["AllocResp"] = "<uid>", "<AllocateResponse>"
			}
			checkpoint.Checksum = "<number>"
			add("device-checkpoint", checkpoint)
		}
	}
	if data, err := o.node.FS().ReadFile("/var/lib/kubelet/dra_manager_state"); err == nil {
		if value := draState(data); value != nil {
			add("dra-state", value)
		}
	}
	pods, csi := o.directories()
	add("pod-dir", pods)
	add("csi-dir", csi)
	if k := o.node.Kubelet(); k != nil && o.c.hasStats() {
		o.node.Loop().Root().Go("stats", func(ctx context.Context) {
			if value := o.volumeStats(ctx, k); value != nil {
				add("stats", value)
			}
		})
	}
	if k := o.node.Kubelet(); k != nil {
		if value := podResources(k, o.c.pods()); value != nil {
			add("podresources", value)
		}
	}
}
