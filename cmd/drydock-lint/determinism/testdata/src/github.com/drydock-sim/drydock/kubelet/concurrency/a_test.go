package concurrency

import (
	"sync"
	"time"

	_ "github.com/drydock-sim/drydock/sim/apiserver"
	_ "k8s.io/kubernetes/pkg/kubelet" // want `import of k8s.io/kubernetes/pkg/kubelet: it is no library`
)

// A test is exempt.
func testHelper(m map[string]int) {
	var wg sync.WaitGroup
	go time.Sleep(1)
	wg.Wait()
	for range m {
	}
}
