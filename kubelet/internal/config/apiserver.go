package config

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
)

// waitForNode is how often the API source asks whether the node informer has
// synced.
const waitForNode = time.Second

// PodWatcher lists and watches the pods of a node and reconnects by itself
// until the group dies; the callbacks run on the group's loop.
type PodWatcher interface {
	WatchPods(g *loop.Group, nodeName string, listed func(pods []*v1.Pod), event func(t watch.EventType, pod *v1.Pod))
}

// StartAPIServer feeds the source from the API's pods of the node, from the
// moment nodeSynced is true (asked at once, then every second), so that no pod
// is judged before the node's labels are known
// (pkg/kubelet/config/apiserver.go).
func StartAPIServer(g *loop.Group, w PodWatcher, nodeName string, nodeSynced func() bool, s *Source) {
	start := func() {
		w.WatchPods(g, nodeName, s.Set, func(t watch.EventType, pod *v1.Pod) {
			switch t {
			case watch.Added, watch.Modified:
				s.Upsert(pod)
			case watch.Deleted:
				s.Delete(pod.Namespace, pod.Name)
			}
		})
	}
	if nodeSynced() {
		start()
		return
	}
	var k *loop.Periodic
	k = g.Every("config/wait-for-node", waitForNode, 0, func() {
		if nodeSynced() {
			k.Stop()
			start()
		}
	})
}
