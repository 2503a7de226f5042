package persistentvolume

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// volume is "name size modes", and "class=" or "for=" (the claim that it is reserved for).
func volume(text string) *v1.PersistentVolume {
	f := strings.Fields(text)
	pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: f[0]}, Spec: v1.PersistentVolumeSpec{
		Capacity: v1.ResourceList{v1.ResourceStorage: resource.MustParse(f[1])}, AccessModes: modes(f[2]),
		PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource:        v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/srv"}},
	}}
	for _, x := range f[3:] {
		switch key, value, _ := strings.Cut(x, "="); key {
		case "class":
			pv.Spec.StorageClassName = value
		case "for":
			pv.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: value}
		}
	}
	return pv
}

// claim is "name size modes", and "class=" or "names=" (the volume that it asks for).
func claim(text string) *v1.PersistentVolumeClaim {
	f := strings.Fields(text)
	c := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: f[0]}, Spec: v1.PersistentVolumeClaimSpec{
		Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse(f[1])}}, AccessModes: modes(f[2]),
		StorageClassName: new(""),
	}}
	for _, x := range f[3:] {
		switch key, value, _ := strings.Cut(x, "="); key {
		case "class":
			c.Spec.StorageClassName = &value
		case "names":
			c.Spec.VolumeName = value
		}
	}
	return c
}

func modes(text string) (out []v1.PersistentVolumeAccessMode) {
	for m := range strings.SplitSeq(text, ",") {
		out = append(out, map[string]v1.PersistentVolumeAccessMode{"rwo": v1.ReadWriteOnce, "rwx": v1.ReadWriteMany, "rox": v1.ReadOnlyMany}[m])
	}
	return out
}

// start starts an API with the controller.
func start(t *testing.T) (srv *apiserver.Server, create func(apiserver.Object), run func(time.Duration)) {
	l := loop.New(loop.Options{Name: "api", Seed: 5})
	t.Cleanup(l.Close)
	srv = apiserver.New(apiserver.Options{Loop: l})
	New(controller.Options{Group: l.NewGroup("kube-controller-manager"), API: srv.Component("persistentvolume-binder", 0, 0)})
	create = func(o apiserver.Object) {
		t.Helper()
		if _, err := srv.Create(o); err != nil {
			t.Fatal(err)
		}
	}
	run = func(d time.Duration) {
		t.Helper()
		if err := l.RunUntil(l.Now().Add(d)); err != nil {
			t.Fatal(err)
		}
	}
	return srv, create, run
}

// TestBinding: which volume claims get, in the order in which they come, and what they are told
// that get none.
func TestBinding(t *testing.T) {
	for _, tt := range []struct {
		name            string
		volumes, claims []string
		want            string // claim:volume, or claim:phase reason
	}{
		{"the smallest that will do", []string{"big 10Gi rwo", "fits 2Gi rwo", "small 1Gi rwo"}, []string{"a 2Gi rwo"}, "a:fits"},
		{"few access modes go before size", []string{"many 2Gi rwo,rwx", "one 5Gi rwo"}, []string{"a 2Gi rwo"}, "a:one"},
		{"all of the modes", []string{"one 2Gi rwo", "many 5Gi rwo,rwx"}, []string{"a 2Gi rwo,rwx"}, "a:many"},
		{"none is too small", []string{"small 1Gi rwo"}, []string{"a 2Gi rwo"}, "a:Pending FailedBinding"},
		{"none has the modes", []string{"one 2Gi rwo"}, []string{"a 2Gi rwx"}, "a:Pending FailedBinding"},
		{"of its class", []string{"none 2Gi rwo", "other 2Gi rwo class=slow", "own 5Gi rwo class=hand"}, []string{"a 1Gi rwo class=hand"}, "a:own"},
		{"each volume once", []string{"x 2Gi rwo", "y 3Gi rwo"}, []string{"a 1Gi rwo", "b 1Gi rwo", "c 1Gi rwo"}, "a:x b:y c:Pending FailedBinding"},
		{"reserved for another", []string{"x 2Gi rwo for=b", "y 9Gi rwo"}, []string{"a 1Gi rwo"}, "a:y"},
		{"reserved for it", []string{"x 9Gi rwo for=a", "y 2Gi rwo"}, []string{"a 1Gi rwo"}, "a:x"},
		{"the one that it names", []string{"x 2Gi rwo", "y 9Gi rwo"}, []string{"a 1Gi rwo names=y"}, "a:y"},
		{"the one that it names is too small", []string{"x 1Gi rwo", "y 9Gi rwo"}, []string{"a 2Gi rwo names=x"}, "a:Pending VolumeMismatch"},
		{"the one that it names is another's", []string{"x 2Gi rwo"}, []string{"b 1Gi rwo", "a 1Gi rwo names=x"}, "b:x a:Pending FailedBinding"},
		{"the one that it names isn't there", []string{"y 9Gi rwo"}, []string{"a 2Gi rwo names=x"}, "a:Pending"},
		{"a class without a provisioner that there is", nil, []string{"a 1Gi rwo class=hand"}, "a:Pending ProvisioningFailed"},
		{"a class that there isn't", nil, []string{"a 1Gi rwo class=absent"}, "a:Pending ProvisioningFailed"},
		{"a class whose provisioner comes from outside", nil, []string{"a 1Gi rwo class=slow"}, "a:Pending ExternalProvisioning"},
		{"a class that waits for a pod", []string{"x 2Gi rwo class=late"}, []string{"a 1Gi rwo class=late"}, "a:Pending WaitForFirstConsumer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv, create, run := start(t)
			create(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "hand"}, Provisioner: "kubernetes.io/no-provisioner"})
			create(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "slow"}, Provisioner: "disks.example.com"})
			create(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: "disks.example.com", VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer)})
			for _, v := range tt.volumes {
				create(volume(v))
			}
			run(time.Second)
			var got []string
			for _, c := range tt.claims {
				create(claim(c))
				run(20 * time.Second)
			}
			for _, text := range tt.claims {
				name := strings.Fields(text)[0]
				c := srv.Store().Lookup(apiserver.KindPersistentVolumeClaim, "default", name).(*v1.PersistentVolumeClaim)
				if c.Status.Phase == v1.ClaimBound {
					pv := srv.Store().Lookup(apiserver.KindPersistentVolume, "", c.Spec.VolumeName).(*v1.PersistentVolume)
					if pv.Status.Phase != v1.VolumeBound || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != c.UID {
						t.Errorf("%s is bound to %s, which is %s for %v", name, pv.Name, pv.Status.Phase, pv.Spec.ClaimRef)
					}
					got = append(got, name+":"+c.Spec.VolumeName)
					continue
				}
				said := fmt.Sprintf("%s:%s", name, c.Status.Phase)
				for _, ev := range srv.Events() {
					if ev.InvolvedObject.Name == name {
						said += " " + ev.Reason
					}
				}
				got = append(got, said)
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestLost: a claim whose volume is gone has nothing of it any more, and says so.
func TestLost(t *testing.T) {
	srv, create, run := start(t)
	create(volume("x 2Gi rwo"))
	create(claim("a 1Gi rwo"))
	run(20 * time.Second)
	status := func() v1.PersistentVolumeClaimStatus {
		return srv.Store().Lookup(apiserver.KindPersistentVolumeClaim, "default", "a").(*v1.PersistentVolumeClaim).Status
	}
	if st := status(); st.Phase != v1.ClaimBound || st.Capacity.Storage().String() != "2Gi" || len(st.AccessModes) != 1 {
		t.Fatalf("bound: %+v", st)
	}
	for _, do := range []func() error{
		func() error { return srv.Delete(apiserver.KindPersistentVolume, "", "x", metav1.DeleteOptions{}) },
		func() error { // as somebody who is in a hurry
			_, err := srv.Patch(apiserver.KindPersistentVolume, "", "x", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), "")
			return err
		},
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	run(20 * time.Second)
	if st := status(); st.Phase != v1.ClaimLost || len(st.Capacity) > 0 || len(st.AccessModes) > 0 {
		t.Errorf("lost: %+v", st)
	}
	if ev := srv.Events(); len(ev) == 0 || ev[len(ev)-1].Reason != "ClaimLost" {
		t.Errorf("events %v", ev)
	}
}

// TestVolumeResync: what could not be written about a volume is written at the next resync, though
// nothing has changed.
func TestVolumeResync(t *testing.T) {
	srv, create, run := start(t)
	heal := srv.AddFault(apiserver.Fault{Verb: "update", Resource: "persistentvolumes/status", Refuse: true})
	create(volume("x 2Gi rwo"))
	phase := func() v1.PersistentVolumePhase {
		return srv.Store().Lookup(apiserver.KindPersistentVolume, "", "x").(*v1.PersistentVolume).Status.Phase
	}
	run(5 * time.Second)
	heal()
	run(9 * time.Second)
	if got := phase(); got == v1.VolumeAvailable {
		t.Errorf("%s before the resync", got)
	}
	run(2 * time.Second)
	if got := phase(); got != v1.VolumeAvailable {
		t.Errorf("%q after the resync", got)
	}
}
