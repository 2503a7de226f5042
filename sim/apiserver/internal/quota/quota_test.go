package quota

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

func list(pairs ...string) v1.ResourceList {
	out := v1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// TestClaims: a claim is charged for what it asks for, or for what it was given if that is more,
// once more for its class.
func TestClaims(t *testing.T) {
	claim := func(asked, given, class string) *v1.PersistentVolumeClaim {
		c := &v1.PersistentVolumeClaim{}
		if class != "" {
			c.Spec.StorageClassName = &class
		}
		c.Spec.Resources.Requests = list("storage", asked)
		if given != "" {
			c.Status.AllocatedResources = list("storage", given)
		}
		return c
	}
	for _, tc := range []struct {
		name  string
		claim *v1.PersistentVolumeClaim
		want  v1.ResourceList
	}{
		{"asked", claim("2Gi", "", ""), list("count/persistentvolumeclaims", "1", "persistentvolumeclaims", "1", "requests.storage", "2Gi")},
		{"given more", claim("2Gi", "3Gi", ""), list("count/persistentvolumeclaims", "1", "persistentvolumeclaims", "1", "requests.storage", "3Gi")},
		{"given less", claim("2Gi", "1Gi", ""), list("count/persistentvolumeclaims", "1", "persistentvolumeclaims", "1", "requests.storage", "2Gi")},
		{"of a class", claim("1500m", "", "fast"), list("count/persistentvolumeclaims", "1", "persistentvolumeclaims", "1", "requests.storage", "2",
			"fast.storageclass.storage.k8s.io/persistentvolumeclaims", "1", "fast.storageclass.storage.k8s.io/requests.storage", "2")},
	} {
		e := Of(&kind.Info{Resource: "persistentvolumeclaims"})
		if got := e.Usage(tc.claim, time.Time{}); !equality.Semantic.DeepEqual(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}
