package persistentvolume

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// TestIndex: through random changes the candidates for a claim are those that a look at all
// volumes finds, in the order in which they came.
func TestIndex(t *testing.T) {
	x, r := newIndex(), rand.New(rand.NewPCG(1, 2))
	var all []*v1.PersistentVolume // as they came
	claims := []controller.Key{{Namespace: "a", Name: "x"}, {Namespace: "a", Name: "y"}, {Namespace: "b", Name: "x"}}
	for i := range 3000 {
		name := fmt.Sprint("pv-", r.IntN(12))
		at := slices.IndexFunc(all, func(pv *v1.PersistentVolume) bool { return pv.Name == name })
		if r.IntN(4) == 0 {
			x.drop(name)
			if at >= 0 {
				all = slices.Delete(all, at, at+1)
			}
		} else {
			pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if k := r.IntN(len(claims) + 2); k < len(claims) {
				pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: claims[k].Namespace, Name: claims[k].Name}
			}
			x.put(pv)
			if at >= 0 {
				all[at] = pv
			} else {
				all = append(all, pv)
			}
		}
		for _, claim := range claims {
			var want []string
			for _, pv := range all {
				if ref := pv.Spec.ClaimRef; ref == nil || ref.Namespace == claim.Namespace && ref.Name == claim.Name {
					want = append(want, pv.Name)
				}
			}
			if got := x.candidates(claim); !slices.Equal(got, want) {
				t.Fatalf("after %d changes, for %v: %q, want %q", i+1, claim, got, want)
			}
		}
	}
}
