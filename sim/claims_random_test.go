package sim

import (
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
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// claimSeeds is how many random runs there are, unless VOLUME_SEEDS says.
const claimSeeds = 6

// claimRun is a volumeRun with a whole control plane: claims are provisioned, pods placed.
type claimRun struct {
	*volumeRun
	storage *plugins.Storage
	claims  []string
	ran     map[string][]string // numbers of pods that ran, by claim
}

// TestRandomClaims holds what TestRandomVolumes does with the control plane in the loop, while
// nodes lose power, sidecars crash and calls fail that took effect; and that whatever a pod wrote
// that ran is there at the end.
func TestRandomClaims(t *testing.T) {
	skipOneLoop(t)
	seeds := uint64(claimSeeds)
	if text := os.Getenv("VOLUME_SEEDS"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = n
	}
	for seed := range seeds {
		if runClaims(t, seed); t.Failed() {
			return
		}
	}
}

func runClaims(t *testing.T, seed uint64) {
	c, err := New(Options{Seed: seed + 1, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := &claimRun{ran: map[string][]string{}, volumeRun: &volumeRun{
		t: t, c: c, rng: rand.New(rand.NewPCG(seed, 22)), seed: seed,
		staged: map[string]bool{}, published: map[string][]string{}, forgotten: map[string]bool{}, asked: map[string][]string{},
	}}
	r.begin()
	for at := 20 * time.Second; at < 8*time.Minute; at += time.Duration(2+r.rng.IntN(9)) * time.Second {
		r.run(at)
		r.act()
	}
	r.end()
}

func (r *claimRun) run(to time.Duration) {
	if err := r.c.RunUntil(to); err != nil {
		r.t.Fatal(err)
	}
}

// begin makes nodes in two zones, the storage, two classes and claims of both.
func (r *claimRun) begin() {
	api := r.c.API()
	r.storage = r.c.StartStorage(plugins.StorageOptions{Driver: disks, TopologyKey: v1.LabelTopologyZone, NodeExpand: true})
	for i, name := range volumeNodes {
		labels := map[string]string{v1.LabelTopologyZone: fmt.Sprintf("z%d", i%2)}
		_, err := r.c.AddNode(NodeOptions{Name: name, Labels: labels, Plugins: &plugins.Options{Observe: func(call plugins.Call) { r.called(name, call) }}})
		if err != nil {
			r.t.Fatal(err)
		}
		r.start(name)
	}
	api.OnChange(r.attachment, apiserver.KindVolumeAttachment)
	api.OnChange(func(ch apiserver.Change) {
		pod := ch.New.(*v1.Pod)
		claim := pod.Labels["claim"]
		if len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Running != nil && !slices.Contains(r.ran[claim], pod.Name) {
			r.ran[claim] = append(r.ran[claim], pod.Name)
		}
	}, apiserver.KindPod)
	r.create(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: disks}})
	for name, mode := range map[string]storagev1.VolumeBindingMode{"late": storagev1.VolumeBindingWaitForFirstConsumer, "now": storagev1.VolumeBindingImmediate} {
		r.create(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: disks, VolumeBindingMode: &mode})
	}
	for i, class := range []string{"late", "now", "late", "now"} {
		name := fmt.Sprintf("c%d", i)
		r.claims = append(r.claims, name)
		r.create(&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: &class,
			Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
		}})
	}
}

// start starts the driver on a node, with its storage.
func (r *claimRun) start(node string) {
	n := r.node(node)
	n.Plugins().StartDriver(plugins.CSI{
		Driver: disks, NodeID: node, Storage: r.storage, Topology: map[string]string{v1.LabelTopologyZone: n.Labels()[v1.LabelTopologyZone]},
		Capabilities: []csi.NodeServiceCapability_RPC_Type{csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME},
	})
}

// act does one thing of those that happen to a cluster.
func (r *claimRun) act() {
	node := r.node(volumeNodes[r.rng.IntN(len(volumeNodes))])
	rule := plugins.Rule{
		Plugin: disks, Times: 1 + r.rng.IntN(3), Delay: time.Duration(r.rng.IntN(6)) * time.Second,
		Code: []codes.Code{codes.Internal, codes.DeadlineExceeded, codes.OK}[r.rng.IntN(3)], Message: "scripted", Late: r.rng.IntN(2) == 0,
	}
	switch r.rng.IntN(18) {
	case 0, 1, 2, 3, 4:
		r.pod(r.claims[r.rng.IntN(len(r.claims))])
	case 5, 6, 7, 8:
		if pods := r.c.API().Pods(); len(pods) > 0 {
			pod := pods[r.rng.IntN(len(pods))]
			opts := metav1.DeleteOptions{}
			if r.rng.IntN(4) == 0 {
				opts.GracePeriodSeconds = new(int64(0))
			}
			_ = r.c.API().Delete(apiserver.KindPod, pod.Namespace, pod.Name, opts)
		}
	case 9, 10:
		r.forget(node.Name())
		node.RestartKubelet(time.Duration(r.rng.IntN(20)) * time.Second)
	case 11:
		_ = node.Plugins().StopDriver(disks) // one that has stopped already
	case 12:
		r.start(node.Name())
	case 13:
		r.storage.StopSidecars()
	case 14:
		r.storage.StartSidecars()
	case 15:
		rule.Method = []string{"NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"}[r.rng.IntN(4)]
		if rule.Late && rule.Code == codes.Internal {
			// A driver that says Internal has done nothing: kubelets, upstream's too, don't
			// undo such a call.
			rule.Code = codes.DeadlineExceeded
		}
		node.Plugins().AddRules(rule)
	case 16:
		rule.Method = plugins.ControllerMethods()[r.rng.IntN(4)]
		r.storage.AddRules(rule)
	case 17:
		node.PowerCut(time.Duration(10+r.rng.IntN(100)) * time.Second)
		for key := range r.staged { // what was mounted went with it
			if strings.HasPrefix(key, node.Name()+" ") {
				r.staged[key], r.published[key] = false, nil
			}
		}
	}
}

// forget notes the volumes of which a kubelet that is killed now will know nothing.
func (r *claimRun) forget(node string) {
	for key := range r.staged {
		if strings.HasPrefix(key, node+" ") && r.staged[key] && len(r.published[key]) == 0 {
			r.forgotten[key] = true
		}
	}
}

// pod makes a pod with a claim, which writes its name.
func (r *claimRun) pod(claim string) string {
	r.pods++
	name := fmt.Sprintf("p%d", r.pods)
	r.create(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"claim": claim}}, Spec: v1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(1)), RestartPolicy: v1.RestartPolicyNever,
		Containers: []v1.Container{{
			Name: "c", Image: "busybox", Command: []string{"sh", "-c", "echo " + name + " >> /d/log; cat /d/log; sleep 9000"},
			VolumeMounts: []v1.VolumeMount{{Name: "d", MountPath: "/d"}},
		}},
		Volumes: []v1.Volume{{Name: "d", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}},
	}})
	return name
}

// end has all work again, reads what is on each volume, and wants nothing to be left after the
// claims are gone.
func (r *claimRun) end() {
	r.storage.StartSidecars()
	for _, name := range volumeNodes {
		r.node(name).Boot()
		r.node(name).StartKubelet()
		r.start(name)
	}
	r.deleteAll(apiserver.KindPod)
	r.run(50 * time.Minute)
	for i, claim := range r.claims {
		reader := r.pod(claim)
		r.run(time.Duration(60+10*i) * time.Minute)
		pod := r.c.API().Pod("default", reader)
		if pod == nil || pod.Status.Phase != v1.PodRunning {
			r.errorf("the reader of %s does not run", claim)
			return
		}
		lines := strings.Fields(r.node(pod.Spec.NodeName).ContainerLog(pod, "c"))
		for _, name := range r.ran[claim] {
			if !slices.Contains(lines, name) {
				r.errorf("%s: what %s wrote is lost: %q", claim, name, lines)
			}
		}
	}
	r.deleteAll(apiserver.KindPod)
	r.run(110 * time.Minute)
	r.deleteAll(apiserver.KindPersistentVolumeClaim)
	r.run(130 * time.Minute)
	r.ended()
	for _, kind := range []apiserver.Kind{apiserver.KindPersistentVolumeClaim, apiserver.KindPersistentVolume, apiserver.KindVolumeAttachment} {
		if list, err := r.c.API().Store().List(kind, ""); err != nil || len(list) > 0 {
			r.errorf("%d of %s are left: %v", len(list), kind, err)
		}
	}
}

func (r *claimRun) deleteAll(kind apiserver.Kind) {
	list, err := r.c.API().Store().List(kind, "default")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, o := range list {
		_ = r.c.API().Delete(kind, "default", o.GetName(), metav1.DeleteOptions{})
	}
}
