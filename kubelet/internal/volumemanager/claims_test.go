package volumemanager

import (
	"context"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// claims are one claim and one volume, if they are there; they take a while to get.
type claims struct {
	claim  *v1.PersistentVolumeClaim
	volume *v1.PersistentVolume
	asked  int
	// attached is what the node's status says to be; nil: there is no node.
	attached []v1.AttachedVolume
}

func (c *claims) GetPersistentVolumeClaim(ctx context.Context, _, name string) (*v1.PersistentVolumeClaim, error) {
	c.asked++
	if err := loop.From(ctx).Sleep(ctx, 10*time.Millisecond); err != nil {
		return nil, err
	}
	if c.claim == nil {
		return nil, apierrors.NewNotFound(v1.Resource("persistentvolumeclaims"), name)
	}
	return c.claim, nil
}

func (c *claims) GetPersistentVolume(_ context.Context, name string) (*v1.PersistentVolume, error) {
	if c.volume == nil {
		return nil, apierrors.NewNotFound(v1.Resource("persistentvolumes"), name)
	}
	return c.volume, nil
}

// TestClaims: a claim's volume is mounted once it is bound to one, and why not is said.
func TestClaims(t *testing.T) {
	bound := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: v1.PersistentVolumeClaimSpec{VolumeName: "pv"},
		Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound},
	}
	pv := func(uid string, source v1.PersistentVolumeSource) *v1.PersistentVolume {
		return &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: v1.PersistentVolumeSpec{
			PersistentVolumeSource: source, ClaimRef: &v1.ObjectReference{UID: "u"},
		}}
	}
	hostPath := v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/srv"}}
	other := pv("u", hostPath)
	other.Spec.ClaimRef.UID = "x"
	theirs := bound.DeepCopy()
	theirs.Namespace, theirs.Name = "default", "p-data"
	own := theirs.DeepCopy()
	own.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "p"}}, v1.SchemeGroupVersion.WithKind("Pod"))}
	const (
		unprocessed = "1.3 wait: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[data]: error processing PVC "
		fails       = unprocessed + "default/claim: "
	)
	for name, c := range map[string]struct {
		claims
		want string
	}{
		"missing":  {claims{}, fails + `failed to fetch PVC from API server: persistentvolumeclaims "claim" not found`},
		"unbound":  {claims{claim: &v1.PersistentVolumeClaim{}}, fails + "PVC is not bound"},
		"no PV":    {claims{claim: bound}, fails + `failed to fetch PV pv from API server: persistentvolumes "pv" not found`},
		"other's":  {claims{claim: bound, volume: other}, fails + "found PV object pv but its pv.Spec.ClaimRef.UID x does not point to claim.UID u"},
		"hostPath": {claims{claim: bound, volume: pv("u", hostPath)}, "1.3 mounted"},
		// The claims of ephemeral volumes are named after pod and volume.
		"ephemeral, missing": {claims{}, unprocessed + `default/p-data: failed to fetch PVC from API server: persistentvolumeclaims "p-data" not found`},
		"ephemeral, other's": {claims{claim: theirs, volume: pv("u", hostPath)}, unprocessed + "default/p-data: PVC default/p-data was not created for pod default/p (pod is not owner)"},
		"ephemeral":          {claims{claim: own, volume: pv("u", hostPath)}, "1.3 mounted"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, false)
			r.claims = c.claims
			v := v1.Volume{Name: "data"}
			if strings.HasPrefix(name, "ephemeral") {
				v.Ephemeral = &v1.EphemeralVolumeSource{}
			} else {
				v.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}
			}
			r.at(time.Second, func() { r.add(testPod("p", v)) })
			r.run(3 * time.Second)
			r.want(c.want)
			if r.claims.asked != 1 {
				t.Errorf("asked %d times, want once", r.claims.asked)
			}
		})
	}
}

func (c *claims) UpdatePersistentVolumeClaimStatus(_ context.Context, claim *v1.PersistentVolumeClaim) (*v1.PersistentVolumeClaim, error) {
	c.claim = claim
	return claim, nil
}

func (c *claims) GetNode(_ context.Context, name string) (*v1.Node, error) {
	if c.attached != nil {
		return &v1.Node{Status: v1.NodeStatus{VolumesAttached: c.attached}}, nil
	}
	return nil, apierrors.NewNotFound(v1.Resource("nodes"), name)
}
