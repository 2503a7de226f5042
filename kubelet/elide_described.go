package kubelet

import (
	"fmt"
	"hash/fnv"
	"io"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/nodestatus"
)

// describe says what each version stands for, so that a check of elision finds
// who changes it without telling. It is as slow as that sounds: each number is
// made of all that the version covers.
func (e *elision) describe(nodeStatus *nodestatus.Elided) {
	kl := e.kl
	// Objects are replaced and never written to, so their addresses stand for
	// what they say.
	number := func(write func(w io.Writer)) func() uint64 {
		return func() uint64 {
			h := fnv.New64a()
			write(h)
			return h.Sum64()
		}
	}
	eachPod := func(write func(w io.Writer, pod *v1.Pod)) func() uint64 {
		return number(func(w io.Writer) { kl.pods.Each(func(pod *v1.Pod) { write(w, pod) }) })
	}
	kl.g.Describe(kl.pods.Version(), "pods", eachPod(func(w io.Writer, pod *v1.Pod) { fmt.Fprintf(w, "%p", pod) }))
	kl.podCache.Describe(kl.g)
	e.pleg.Describe(kl.g)
	nodeStatus.Describe(kl.g)
	e.checks.describe(kl.g)
	kl.containers.cpuManager.Describe(kl.g)
	kl.statusManager.Describe(kl.g)
	kl.workers.Describe()
	kl.workers.Queue.Describe(kl.g)
	kl.g.Describe(&kl.node.version, "node", number(func(w io.Writer) { fmt.Fprintf(w, "%p", kl.node.node) }))
	kl.g.Describe(&kl.node.forPods, "node for pods", number(func(w io.Writer) {
		if n := kl.node.node; n != nil {
			fmt.Fprint(w, n.UID, n.Labels, n.Annotations, n.Status.Addresses)
		}
	}))
	kl.g.Describe(&kl.node.images.version, "images", number(func(w io.Writer) { fmt.Fprintf(w, "%p %d", kl.node.images.list, len(kl.node.images.list)) }))
	kl.g.Describe(&kl.node.state.version, "health", number(func(w io.Writer) {
		fmt.Fprint(w, kl.node.state.runtimeError, kl.node.state.networkError, kl.node.state.storageError)
	}))
	kl.g.Describe(&e.conditions, "conditions", number(func(w io.Writer) {
		for _, c := range [...]v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure} {
			fmt.Fprint(w, kl.eviction.Under(c))
		}
	}))
	kl.g.Describe(&e.runtime, "runtime", func() uint64 {
		if !e.runtimeKnown() {
			return 0
		}
		return e.notifier.Generation()
	})
}
