package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// volumePod is a pod with the volume v0 on a node.
func volumePod(name, node string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: v1.PodSpec{
		NodeName:   node,
		Containers: []v1.Container{{Name: "c", Image: "busybox", Command: []string{"sleep", "9000"}, VolumeMounts: []v1.VolumeMount{{Name: "d", MountPath: "/d"}}}},
		Volumes:    []v1.Volume{{Name: "d", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "v0"}}}},
	}}
}

// TestNodeDiesWithVolume: a volume that one node may have stays on a dead one for six minutes
// after its pod is gone, unless the node is said to be out of service; whoever waits for it on
// another node is told.
func TestNodeDiesWithVolume(t *testing.T) {
	for name, tt := range map[string]struct {
		outOfService bool
		// waits are between the deletion of the old pod and the start of the new one.
		atLeast, atMost time.Duration
	}{
		"not ready":      {false, 6 * time.Minute, 6*time.Minute + 30*time.Second},
		"out of service": {true, time.Minute, 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r := newVolumeRun(t, 0, controlplane.AttachDetach, "node-lifecycle-controller")
			defer r.c.Close()
			run := func(to time.Duration) {
				t.Helper()
				if err := r.c.RunUntil(to); err != nil {
					t.Fatal(err)
				}
			}
			run(20 * time.Second)
			r.create(volumePod("old", "n0"))
			run(time.Minute)
			if p := r.c.API().Pod("default", "old"); p.Status.Phase != v1.PodRunning {
				t.Fatalf("the first pod is %s", p.Status.Phase)
			}
			r.node("n0").PowerCut(0)
			r.staged["n0 v0"], r.published["n0 v0"] = false, nil // what was mounted went with it
			run(3 * time.Minute)
			if err := r.c.API().Delete(apiserver.KindPod, "default", "old", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
				t.Fatal(err)
			}
			r.create(volumePod("new", "n1"))
			const gone = 3 * time.Minute
			run(gone + time.Minute)
			if tt.outOfService {
				node := r.c.API().Node("n0").DeepCopy()
				node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: v1.TaintNodeOutOfService, Effect: v1.TaintEffectNoExecute})
				if _, err := r.c.API().Update(node, ""); err != nil {
					t.Fatal(err)
				}
			}
			run(gone + tt.atLeast)
			if p := r.c.API().Pod("default", "new"); p.Status.Phase != v1.PodPending {
				t.Errorf("the pod is %s after %v", p.Status.Phase, tt.atLeast)
			}
			run(gone + tt.atMost)
			if p := r.c.API().Pod("default", "new"); p.Status.Phase != v1.PodRunning {
				t.Errorf("the pod is %s after %v", p.Status.Phase, tt.atMost)
			}
			var told []string
			events, err := r.c.API().Store().List(apiserver.KindEvent, "default")
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range events {
				e := o.(*v1.Event)
				if e.InvolvedObject.Name == "new" && strings.HasSuffix(e.Reason, "AttachVolume") {
					told = append(told, e.Reason+" "+e.Message)
				}
			}
			want := `FailedAttachVolume Multi-Attach error for volume "v0" Volume is already exclusively attached to one node and can't be attached to another` +
				"\n" + `SuccessfulAttachVolume AttachVolume.Attach succeeded for volume "v0" `
			if got := strings.Join(told, "\n"); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// TestStageIsCut: a driver that doesn't answer is given two minutes; then the volume may be
// staged, and is unstaged once the pod is gone.
func TestStageIsCut(t *testing.T) {
	r := newVolumeRun(t, 0, controlplane.AttachDetach)
	defer r.c.Close()
	r.node("n0").Plugins().AddRules(plugins.Rule{Plugin: disks, Method: "NodeStageVolume", Times: 1, Delay: time.Hour})
	for _, step := range []struct {
		at time.Duration
		do func()
	}{
		{20 * time.Second, func() { r.create(volumePod("p", "n0")) }},
		{100 * time.Second, func() {
			if err := r.c.API().Delete(apiserver.KindPod, "default", "p", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}},
		{4 * time.Minute, func() {}},
	} {
		if err := r.c.RunUntil(step.at); err != nil {
			t.Fatal(err)
		}
		step.do()
	}
	want := []string{"NodeStageVolume 2m0s DeadlineExceeded", "NodeUnstageVolume 0s OK"}
	if got := r.asked["n0"]; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	r.ended()
}

// TestSlowDetach: a detachment that takes longer than the controller waits, and whose volume
// is wanted again meanwhile, is over before the volume is attached anew; also if that is in
// the pause before the controller waits again.
func TestSlowDetach(t *testing.T) {
	r := newSlowVolumeRun(t, 3*time.Minute, controlplane.AttachDetach)
	defer r.c.Close()
	run := func(to time.Duration) {
		t.Helper()
		if err := r.c.RunUntil(to); err != nil {
			t.Fatal(err)
		}
	}
	run(20 * time.Second)
	r.create(volumePod("old", "n0"))
	run(time.Minute)
	if err := r.c.API().Delete(apiserver.KindPod, "default", "old", metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}); err != nil {
		t.Fatal(err)
	}
	at := time.Minute
	for ; len(r.attachments("v0")) == 1 && r.attachments("v0")[0].DeletionTimestamp == nil; at += 10 * time.Millisecond {
		run(at)
	}
	run(at + 2*time.Minute + 200*time.Millisecond)
	r.create(volumePod("new", "n0"))
	run(12 * time.Minute)
	if p := r.c.API().Pod("default", "new"); p.Status.Phase != v1.PodRunning {
		t.Errorf("the pod is %s", p.Status.Phase)
	}
}
