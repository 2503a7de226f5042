package table

import (
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTableFindsNames compares a table with a map, also when many names share
// a hash, or all do.
func TestTableFindsNames(t *testing.T) {
	for name, hash := range map[string]func(namespace, name string) uint64{
		"real": NewNames().hash,
		"few":  func(_, name string) uint64 { return uint64(len(name)) % 3 },
		"one":  func(_, _ string) uint64 { return 7 },
	} {
		t.Run(name, func(t *testing.T) {
			tab := New[*v1.ConfigMap]()
			tab.names.hash = hash
			want := map[[2]string]*v1.ConfigMap{}
			rnd := rand.New(rand.NewPCG(1, 2))
			for i := range 4000 {
				k := [2]string{fmt.Sprint("ns", rnd.IntN(3)), fmt.Sprint("n", rnd.IntN(200))}
				if rnd.IntN(5) < 2+i/2000 {
					tab.Drop(k[0], k[1])
					delete(want, k)
				} else {
					o := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k[0], Name: k[1]}}
					tab.Set(o)
					want[k] = o
				}
				if i%97 == 0 && len(tab.View()) != len(want) {
					t.Fatalf("step %d: %d objects, want %d", i, len(tab.View()), len(want))
				}
			}
			for a := range 3 {
				for b := range 200 {
					k := [2]string{fmt.Sprint("ns", a), fmt.Sprint("n", b)}
					if got, _ := tab.Get(k[0], k[1]); got != want[k] {
						t.Fatalf("%v: %v, want %v", k, got, want[k])
					}
				}
			}
		})
	}
}
