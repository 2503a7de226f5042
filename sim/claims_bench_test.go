package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/plugins"
)

const benchDriver = "disks.example.com"

// BenchmarkClaims measures two clusters of nodes with 30 pods each that are alike but for one
// thing: in one, a third of the pods have a claim of a driver each, which was provisioned,
// attached and mounted. An iteration is ten virtual minutes of both. One cluster is made, run
// and closed before the other: of two alike that are in memory at once, the second is a fifth
// slower.
//
//	plain-node-s/s, claims-node-s/s  node-seconds per wall second once all run
//	of-plain                         the second by the first
//	B/claim                          live heap that a claim takes, with its volume, its attachment
//	                                 and its mount on the node
//
// DRYDOCK_BENCH_NODES replaces the default number of nodes.
func BenchmarkClaims(b *testing.B) {
	nodes := benchNodes(1000)
	defer collectSeldom(2 * nodes)() // a cluster, and the garbage of 10,000 claims that start
	b.StopTimer()
	var speed [2]float64
	var heap [2]uint64
	for i, claims := range []bool{false, true} {
		base := liveHeap()
		c, until := startClaimsCluster(b, nodes, claims)
		heap[i] = liveHeap() - base
		b.StartTimer()
		began := time.Now()
		for range b.N {
			until += 10 * time.Minute
			mustRun(b, c, until)
		}
		b.StopTimer()
		speed[i] = float64(nodes*600*b.N) / time.Since(began).Seconds()
		c.Close()
	}
	b.ReportMetric(speed[0], "plain-node-s/s")
	b.ReportMetric(speed[1], "claims-node-s/s")
	b.ReportMetric(speed[1]/speed[0], "of-plain")
	b.ReportMetric((float64(heap[1])-float64(heap[0]))/float64(nodes*podsPerNode/3), "B/claim")
}

// startClaimsCluster returns a cluster whose pods all run, a third of them with claims if so
// wanted, and its time. Both have drivers on all nodes.
func startClaimsCluster(b *testing.B, nodes int, claims bool) (*sim.Cluster, time.Duration) {
	b.Helper()
	c, err := sim.New(sim.Options{Seed: 1, Workers: 2, Keep: func(trace.Kind, string, []trace.Field) bool { return false }})
	if err != nil {
		b.Fatal(err)
	}
	storage := c.StartStorage(plugins.StorageOptions{Driver: benchDriver, QPS: 200})
	for i := range nodes {
		name := fmt.Sprintf("worker-%d", i)
		n, err := c.AddNode(sim.NodeOptions{
			Name:     name,
			Capacity: v1.ResourceList{v1.ResourceCPU: resource.MustParse("16"), v1.ResourceMemory: resource.MustParse("64Gi")},
			Runtime:  fakecri.Options{Images: []fakecri.Image{{Name: "app:1", Present: true}}},
			Plugins:  &plugins.Options{},
		})
		if err != nil {
			b.Fatal(err)
		}
		n.Plugins().StartDriver(plugins.CSI{Driver: benchDriver, NodeID: name, Storage: storage, Capabilities: []csi.NodeServiceCapability_RPC_Type{csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}})
	}
	create := func(obj apiserver.Object) {
		if _, err := c.API().Create(obj); err != nil {
			b.Fatal(err)
		}
	}
	create(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: benchDriver}})
	create(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disks"}, Provisioner: benchDriver})
	until := 30 * time.Second
	mustRun(b, c, until)
	const wave = 20 // attached within 10 s
	for i := range nodes * podsPerNode {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("web-%d", i)}, Spec: v1.PodSpec{
			NodeName: fmt.Sprintf("worker-%d", i%nodes), Containers: []v1.Container{{Name: "app", Image: "app:1"}},
		}}
		if i/nodes%3 == 0 && i%wave == 0 { // what waits for its volume is looked at ten times a second
			until += 10 * time.Second
			mustRun(b, c, until)
		}
		if claims && i/nodes%3 == 0 {
			create(&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: pod.Name}, Spec: v1.PersistentVolumeClaimSpec{
				AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: new("disks"),
				Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
			}})
			pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: pod.Name}}}}
			pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
		}
		create(pod)
	}
	for c.PodsByPhase()[v1.PodRunning] < nodes*podsPerNode {
		if until += 10 * time.Second; until > 4*time.Hour {
			b.Fatalf("after %v %v", until, c.PodsByPhase())
		}
		mustRun(b, c, until)
	}
	until += 75 * time.Minute // the events of the start, of which claims have more, have expired
	mustRun(b, c, until)
	return c, until
}
