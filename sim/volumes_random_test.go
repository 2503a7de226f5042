package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// volumeSeeds is how many random runs there are, unless VOLUME_SEEDS says.
const volumeSeeds = 15

const disks = "disks.example.com"

// volumeNodes are the nodes of a run.
var volumeNodes = [...]string{"n0", "n1", "n2"}

// volumeRun is a cluster on which pods with volumes come and go, whose driver, attacher and
// kubelets fail. It keeps what the driver was asked for, and has granted.
type volumeRun struct {
	t       *testing.T
	c       *Cluster
	rng     *rand.Rand
	seed    uint64
	pods    int
	volumes int
	// staged and published are by "node volume", published with the paths.
	staged    map[string]bool
	published map[string][]string
	// forgotten are those that were staged and not published when the kubelet was killed. As
	// upstream's, a kubelet finds what it mounted by the pods' directories, and so knows
	// nothing of them any more if the pod is gone by then.
	forgotten map[string]bool
	// asked is what nodes' drivers were asked of volumes, how long it took and what they said.
	asked map[string][]string
}

// TestRandomVolumes holds, over random runs, that no volume is attached to two nodes, none is
// published without being staged, none unstaged while it is published, none detached while it
// is staged, and that nothing is left of volumes whose pods are gone.
func TestRandomVolumes(t *testing.T) {
	skipOneLoop(t)
	seeds := uint64(volumeSeeds)
	if text := os.Getenv("VOLUME_SEEDS"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = n
	}
	for seed := range seeds {
		if runVolumes(t, seed); t.Failed() {
			return
		}
	}
}

// newVolumeRun returns a run with some parts of the control plane.
func newVolumeRun(t *testing.T, seed uint64, parts ...string) *volumeRun {
	return makeVolumeRun(t, seed, 300*time.Millisecond, parts)
}

// newSlowVolumeRun is newVolumeRun with an attacher that takes its time to detach.
func newSlowVolumeRun(t *testing.T, detach time.Duration, parts ...string) *volumeRun {
	return makeVolumeRun(t, 0, detach, parts)
}

func makeVolumeRun(t *testing.T, seed uint64, detach time.Duration, parts []string) *volumeRun {
	c, err := New(Options{Seed: seed + 1, Workers: 1, ControlPlane: controlplane.Options{
		Disable: slices.DeleteFunc(controlplane.Names(), func(n string) bool { return slices.Contains(parts, n) }),
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := &volumeRun{t: t, c: c, rng: rand.New(rand.NewPCG(seed, 21)), seed: seed, volumes: 4, staged: map[string]bool{}, published: map[string][]string{}, forgotten: map[string]bool{}, asked: map[string][]string{}}
	r.begin(detach)
	return r
}

func runVolumes(t *testing.T, seed uint64) {
	r := newVolumeRun(t, seed, controlplane.AttachDetach)
	c := r.c
	defer c.Close()
	for at := 20 * time.Second; at < 6*time.Minute; at += time.Duration(1+r.rng.IntN(9)) * time.Second {
		if err := c.RunUntil(at); err != nil {
			t.Fatal(err)
		}
		r.act()
	}
	for _, name := range volumeNodes {
		r.node(name).StartKubelet()
		r.start(name)
	}
	for _, pod := range c.API().Pods() {
		_ = c.API().Delete(apiserver.KindPod, pod.Namespace, pod.Name, metav1.DeleteOptions{})
	}
	// A pause after failures takes up to 2m2s, and there may be several to come.
	if err := c.RunUntil(45 * time.Minute); err != nil {
		t.Fatal(err)
	}
	r.ended()
}

func (r *volumeRun) node(name string) *Node { return r.c.byName[name] }

func (r *volumeRun) errorf(format string, args ...any) {
	r.t.Helper()
	r.t.Errorf("seed %d, %v: %s", r.seed, r.c.API().Loop().Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

// begin makes nodes with a driver each, the attacher, and volumes with their claims.
func (r *volumeRun) begin(detach time.Duration) {
	api := r.c.API()
	for _, name := range volumeNodes {
		_, err := r.c.AddNode(NodeOptions{Name: name, Plugins: &plugins.Options{Observe: func(call plugins.Call) { r.called(name, call) }}})
		if err != nil {
			r.t.Fatal(err)
		}
		r.start(name)
	}
	plugins.StartAttacher(api, plugins.Attacher{Driver: disks, Attach: 700 * time.Millisecond, Detach: detach, Fail: int(r.seed % 3)},
		func(err error) { r.t.Log(err) })
	api.OnChange(r.attachment, apiserver.KindVolumeAttachment)
	r.create(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: disks}})
	for i := range r.volumes {
		amount, class, name := v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}, "", fmt.Sprintf("v%d", i)
		modes := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
		claim := &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: v1.PersistentVolumeClaimSpec{
				AccessModes: modes, VolumeName: name, StorageClassName: &class, Resources: v1.VolumeResourceRequirements{Requests: amount},
			},
		}
		is := r.create(claim).(*v1.PersistentVolumeClaim).DeepCopy()
		r.create(&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PersistentVolumeSpec{
			AccessModes: modes, Capacity: amount, ClaimRef: &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: name, UID: is.UID},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: disks, VolumeHandle: name}},
		}})
		is.Status.Phase, is.Status.Capacity = v1.ClaimBound, amount
		if _, err := api.Update(is, "status"); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *volumeRun) create(obj apiserver.Object) apiserver.Object {
	made, err := r.c.API().Create(obj)
	if err != nil {
		r.t.Fatal(err)
	}
	return made
}

func (r *volumeRun) start(node string) {
	r.node(node).Plugins().StartDriver(plugins.CSI{Driver: disks, NodeID: node, Capabilities: []csi.NodeServiceCapability_RPC_Type{csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}})
}

// called holds what a driver may rely on, and notes what it has granted.
func (r *volumeRun) called(node string, call plugins.Call) {
	if strings.HasSuffix(call.Method, "Volume") {
		r.asked[node] = append(r.asked[node], fmt.Sprintf("%s %v %v", call.Method, call.Took.Round(time.Millisecond), status.Code(call.Err)))
	}
	switch req := call.Req.(type) {
	case *csi.NodeStageVolumeRequest:
		if !r.attached(node, req.VolumeId) {
			r.errorf("%s is staged on %s, where it is not attached", req.VolumeId, node)
		}
		if call.Err == nil {
			r.staged[node+" "+req.VolumeId], r.forgotten[node+" "+req.VolumeId] = true, false
		}
	case *csi.NodePublishVolumeRequest:
		key := node + " " + req.VolumeId
		if !r.staged[key] {
			r.errorf("%s is published on %s, where it is not staged", req.VolumeId, node)
		}
		if call.Err == nil && !slices.Contains(r.published[key], req.TargetPath) {
			r.published[key] = append(r.published[key], req.TargetPath)
		}
	case *csi.NodeUnpublishVolumeRequest:
		if call.Err == nil {
			key := node + " " + req.VolumeId
			r.published[key] = slices.DeleteFunc(r.published[key], func(p string) bool { return p == req.TargetPath })
		}
	case *csi.NodeUnstageVolumeRequest:
		key := node + " " + req.VolumeId
		if len(r.published[key]) > 0 {
			r.errorf("%s is unstaged on %s, while it is published at %v", req.VolumeId, node, r.published[key])
		}
		if call.Err == nil {
			r.staged[key] = false
		}
	}
}

// attachments are the VolumeAttachments of a volume.
func (r *volumeRun) attachments(volume string) []*storagev1.VolumeAttachment {
	return slices.DeleteFunc(slices.Clone(apiserver.Objects[*storagev1.VolumeAttachment](r.c.API().Store(), apiserver.KindVolumeAttachment)), func(va *storagev1.VolumeAttachment) bool {
		return *va.Spec.Source.PersistentVolumeName != volume
	})
}

func (r *volumeRun) attached(node, volume string) bool {
	return slices.ContainsFunc(r.attachments(volume), func(va *storagev1.VolumeAttachment) bool { return va.Spec.NodeName == node && va.Status.Attached })
}

// attachment holds that a volume is on one node, and leaves it only when nothing of it is
// there.
func (r *volumeRun) attachment(ch apiserver.Change) {
	va := ch.New.(*storagev1.VolumeAttachment)
	volume := *va.Spec.Source.PersistentVolumeName
	if list := r.attachments(volume); len(list) > 1 {
		r.errorf("%s is attached to %s and %s", volume, list[0].Spec.NodeName, list[1].Spec.NodeName)
	}
	key := va.Spec.NodeName + " " + volume
	if old, ok := ch.Old.(*storagev1.VolumeAttachment); (ok && old != nil && old.DeletionTimestamp == nil && va.DeletionTimestamp != nil || ch.Type == watch.Deleted) && r.staged[key] && !r.forgotten[key] {
		r.errorf("%s is detached from %s, where it is staged", volume, va.Spec.NodeName)
	}
}

// act does one thing of those that happen to a cluster.
func (r *volumeRun) act() {
	node := r.node(volumeNodes[r.rng.IntN(len(volumeNodes))])
	switch r.rng.IntN(16) {
	case 0, 1, 2, 3, 4, 5:
		r.pod(node.Name())
	case 6, 7, 8, 9, 10:
		if pods := r.c.API().Pods(); len(pods) > 0 {
			pod := pods[r.rng.IntN(len(pods))]
			opts := metav1.DeleteOptions{}
			if r.rng.IntN(4) == 0 {
				opts.GracePeriodSeconds = new(int64(0))
			}
			_ = r.c.API().Delete(apiserver.KindPod, pod.Namespace, pod.Name, opts)
		}
	case 11, 12:
		for i := range r.volumes {
			if key := fmt.Sprintf("%s v%d", node.Name(), i); r.staged[key] && len(r.published[key]) == 0 {
				r.forgotten[key] = true
			}
		}
		node.RestartKubelet(time.Duration(r.rng.IntN(20)) * time.Second)
	case 13:
		_ = node.Plugins().StopDriver(disks) // one that has stopped already
	case 14:
		r.start(node.Name())
	case 15:
		methods := [...]string{"NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"}
		answers := [...]codes.Code{codes.Internal, codes.DeadlineExceeded, codes.OK}
		node.Plugins().AddRules(plugins.Rule{
			Plugin: disks, Method: methods[r.rng.IntN(len(methods))], Times: 1 + r.rng.IntN(3),
			Delay: time.Duration(r.rng.IntN(6)) * time.Second, Code: answers[r.rng.IntN(len(answers))], Message: "scripted",
		})
	}
}

// pod makes a pod on a node with one or two of the volumes.
func (r *volumeRun) pod(node string) {
	r.pods++
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p%d", r.pods)}, Spec: v1.PodSpec{
		NodeName: node, TerminationGracePeriodSeconds: new(int64(1)), RestartPolicy: v1.RestartPolicyNever,
		Containers: []v1.Container{{Name: "c", Image: "busybox", Command: []string{"sleep", strconv.Itoa(cmp.Or(r.rng.IntN(3), 100) * 10)}}},
	}}
	for _, i := range r.rng.Perm(r.volumes)[:1+r.rng.IntN(2)] {
		name := fmt.Sprintf("v%d", i)
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: "d" + name, VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, v1.VolumeMount{Name: "d" + name, MountPath: "/" + name})
	}
	r.create(pod)
}

// ended holds that nothing is left, once all pods are gone.
func (r *volumeRun) ended() {
	var left []error
	for _, p := range r.c.API().Pods() {
		left = append(left, fmt.Errorf("pod %s is still there", p.Name))
	}
	for i := range r.volumes {
		volume := fmt.Sprintf("v%d", i)
		for _, va := range r.attachments(volume) {
			left = append(left, fmt.Errorf("%s is still attached to %s", volume, va.Spec.NodeName))
		}
		for _, node := range volumeNodes {
			if key := node + " " + volume; r.staged[key] && !r.forgotten[key] || len(r.published[key]) > 0 {
				left = append(left, fmt.Errorf("%s is staged on %s, or published at %v", volume, node, r.published[key]))
			}
		}
	}
	for _, name := range volumeNodes {
		n := r.c.API().Node(name)
		if len(n.Status.VolumesAttached)+len(n.Status.VolumesInUse) > 0 {
			left = append(left, fmt.Errorf("node %s: attached %v, in use %v", name, n.Status.VolumesAttached, n.Status.VolumesInUse))
		}
		for _, mount := range r.node(name).FS().Mounts() {
			if strings.Contains(mount, "/pods/") && strings.Contains(mount, "~csi") {
				left = append(left, fmt.Errorf("node %s: %s is mounted", name, mount))
			}
		}
	}
	if err := errors.Join(left...); err != nil {
		r.errorf("%v", err)
	}
}
