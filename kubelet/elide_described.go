package kubelet

import (
	"fmt"
	"hash/fnv"
	"io"

	v1 "k8s.io/api/core/v1"
)

// describe says what each version stands for, so that a check of elision finds
// who changes it without telling. It is as slow as that sounds: each number is
// made of all that the version covers.
func (e *elision) describe() {
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
	kl.pods.Version().Describe("pods", eachPod(func(w io.Writer, pod *v1.Pod) { fmt.Fprintf(w, "%p", pod) }))
	kl.podCache.Version().Describe("pod cache", eachPod(func(w io.Writer, pod *v1.Pod) {
		status, err := kl.podCache.Get(pod.UID)
		if err == nil && len(status.SandboxStatuses)+len(status.ContainerStatuses) > 0 {
			fmt.Fprintf(w, "%s %p", pod.UID, status)
		}
	}))
	kl.statusManager.Version().Describe("statuses", eachPod(func(w io.Writer, pod *v1.Pod) {
		if status, ok := kl.statusManager.GetPodStatus(pod.UID); ok {
			fmt.Fprintf(w, "%s %p", pod.UID, status)
		}
	}))
	kl.workers.Describe()
	kl.workers.Queue.Version().Describe("queue", number(func(w io.Writer) {
		_, due := kl.workers.Queue.First()
		fmt.Fprint(w, kl.workers.Queue.Len(), due)
	}))
	kl.node.version.Describe("node", number(func(w io.Writer) { fmt.Fprintf(w, "%p", kl.node.node) }))
	kl.node.forPods.Describe("node for pods", number(func(w io.Writer) {
		if n := kl.node.node; n != nil {
			fmt.Fprint(w, n.UID, n.Labels, n.Annotations, n.Status.Addresses)
		}
	}))
	kl.node.images.version.Describe("images", number(func(w io.Writer) { fmt.Fprintf(w, "%p %d", kl.node.images.list, len(kl.node.images.list)) }))
	kl.node.state.version.Describe("health", number(func(w io.Writer) {
		fmt.Fprint(w, kl.node.state.runtimeError, kl.node.state.networkError, kl.node.state.storageError)
	}))
	e.conditions.Describe("conditions", number(func(w io.Writer) {
		for _, c := range [...]v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure} {
			fmt.Fprint(w, kl.eviction.Under(c))
		}
	}))
	e.runtime.Describe("runtime", func() uint64 {
		if !e.runtimeKnown() {
			return 0
		}
		return e.notifier.Generation()
	})
}
