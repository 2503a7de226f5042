package library

import (
	_ "k8s.io/apimachinery/pkg/util/wait" // want `import of k8s.io/apimachinery/pkg/util/wait: it starts goroutines`
	"k8s.io/client-go/tools/record"
	_ "k8s.io/client-go/util/workqueue" // want `import of k8s.io/client-go/util/workqueue`
	"k8s.io/utils/clock"
)

func f(c clock.PassiveClock) {
	var b record.EventBroadcaster = record.NewBroadcaster() // want `use of k8s.io/client-go/tools/record.NewBroadcaster`
	_ = b
	_ = clock.RealClock{} // want `use of k8s.io/utils/clock.RealClock`
	_ = record.NewEventCorrelator(c)
}
