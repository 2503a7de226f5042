// Package hugepages asks the kernel to back the heap of this process with huge
// pages. A simulation walks gigabytes of small objects in no order, as does the
// collector of its garbage, and much of that time goes into address
// translation. The Go runtime asks for none, and on most systems who does not
// ask gets none (transparent_hugepage/enabled is madvise).
package hugepages

import (
	"sync"
	"time"
)

// Keep asks now and again for what the heap has grown by, until stop is called.
// Where it can't be had nothing happens.
func Keep(every time.Duration) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		tick := time.NewTicker(every)
		defer tick.Stop()
		for asked := int64(0); ; {
			n, err := Advise(asked)
			if err != nil {
				return
			}
			asked = n
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		close(done)
		wg.Wait()
	}
}
