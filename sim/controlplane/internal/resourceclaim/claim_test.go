package resourceclaim

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// TestDeletedClaim: what becomes of a claim with devices that is deleted. One that a pod has stays
// until the pod is done.
func TestDeletedClaim(t *testing.T) {
	const (
		devices = `"allocation":{"devices":{"results":[{"request":"gpu","driver":"gpu.example.com","pool":"node","device":"gpu-0"}]}}`
		byPod   = `"reservedFor":[{"resource":"pods","name":"p","uid":"`
	)
	for _, tt := range []struct {
		name     string
		held     bool // it has the scheduler's finalizer
		reserved bool
		want     string
	}{
		{"without a finalizer", false, false, "gone"},
		{"whose devices nobody uses", true, false, "gone"},
		{"that a pod has", true, true, "there, gone with its pod"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := loop.New(loop.Options{Name: "api", Seed: 5})
			t.Cleanup(l.Close)
			srv := apiserver.New(apiserver.Options{Loop: l})
			New(controller.Options{Group: l.NewGroup("kube-controller-manager"), API: srv.Component("resource-claim-controller", 0, 0)})
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1.PodSpec{
				Containers:     []v1.Container{{Name: "main", Image: "train:1"}},
				ResourceClaims: []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("c")}},
			}}
			claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
				Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}}}}}
			if tt.held {
				claim.Finalizers = []string{resourcev1.Finalizer}
			}
			for _, o := range []apiserver.Object{pod, claim} {
				if _, err := srv.Create(o); err != nil {
					t.Fatal(err)
				}
			}
			status := devices
			if tt.reserved {
				status += "," + byPod + string(srv.Pod("default", "p").UID) + `"}]`
			}
			if _, err := srv.Patch(apiserver.KindResourceClaim, "default", "c", types.MergePatchType, []byte(`{"status":{`+status+`}}`), "status"); err != nil {
				t.Fatal(err)
			}
			// remove deletes something, and says whether the claim is there a little later.
			remove := func(kind apiserver.Kind, name string) string {
				if err := srv.Delete(kind, "default", name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
					t.Fatal(err)
				}
				if err := l.RunUntil(l.Now().Add(5 * time.Second)); err != nil {
					t.Fatal(err)
				}
				if srv.Store().Lookup(apiserver.KindResourceClaim, "default", "c") != nil {
					return "there"
				}
				return "gone"
			}
			got := remove(apiserver.KindResourceClaim, "c")
			if got == "there" {
				got += ", " + remove(apiserver.KindPod, "p") + " with its pod"
			}
			if got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
