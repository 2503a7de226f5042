package kubelet

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNodeDiffers has a heartbeat, and nothing that a pod's sync looks at, be no
// reason to look at pods.
func TestNodeDiffers(t *testing.T) {
	base := v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "worker", UID: "1", ResourceVersion: "7", Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{"ttl": "0"}},
		Status:     v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.0.0.1"}}},
	}
	for _, tc := range []struct {
		name   string
		change func(n *v1.Node)
		want   bool
	}{
		{"a heartbeat", func(n *v1.Node) {
			n.ResourceVersion = "8"
			n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, LastHeartbeatTime: metav1.Unix(1, 0)}}
		}, false},
		{"the node controller's taint", func(n *v1.Node) { n.Spec.Taints = []v1.Taint{{Key: "x"}} }, false},
		{"another address", func(n *v1.Node) {
			n.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.0.0.2"}}
		}, true},
		{"an annotation", func(n *v1.Node) { n.Annotations = map[string]string{"ttl": "15"} }, true},
		{"a label", func(n *v1.Node) { n.Labels = nil }, true},
		{"deleted", func(n *v1.Node) { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, true},
		{"created anew", func(n *v1.Node) { n.UID = "2" }, true},
	} {
		next := *base.DeepCopy()
		tc.change(&next)
		i := nodeInformer{node: &base}
		if got := i.differs(&next); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
	if i := (nodeInformer{node: &base}); !i.differs(nil) || !(&nodeInformer{}).differs(&base) {
		t.Error("a node that comes or goes makes no difference")
	}
}
