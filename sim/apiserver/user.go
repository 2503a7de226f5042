package apiserver

import (
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"

	v1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/flow"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
)

// What scenarios, controllers and expectations do, they do here: on the
// server's loop, without latency or faults.

// OnChange has fn called on the server's loop after each committed write, in
// the order of the writes; the trace has it by then.
func (s *Server) OnChange(fn func(Change), kinds ...Kind) { s.store.OnChange(fn, kinds...) }

// OnChangeBut is OnChange for all kinds but these, also for those that are defined later.
func (s *Server) OnChangeBut(fn func(Change), kinds ...Kind) { s.store.OnChangeBut(fn, kinds...) }

// Apply is Store.Apply.
func (s *Server) Apply(obj Object) (Object, error) { return s.store.Apply(s.now(), obj) }

// Create is Store.Create.
func (s *Server) Create(obj Object) (Object, error) { return s.store.Create(s.now(), obj) }

// Update is Store.Update.
func (s *Server) Update(obj Object, sub string) (Object, error) {
	return s.store.Update(s.now(), obj, sub)
}

// Patch is Store.Patch.
func (s *Server) Patch(k Kind, namespace, name string, pt types.PatchType, data []byte, sub string) (Object, error) {
	return s.store.Patch(s.now(), k, namespace, name, pt, data, sub)
}

// Delete is Store.Delete.
func (s *Server) Delete(k Kind, namespace, name string, opts metav1.DeleteOptions) error {
	_, err := s.store.Delete(s.now(), k, namespace, name, opts)
	return err
}

// Bind is Store.Bind.
func (s *Server) Bind(namespace, name, node string, binding metav1.ObjectMeta) (*v1.Pod, error) {
	return s.store.Bind(s.now(), namespace, name, node, binding)
}

// PatchPodStatus is Store.PatchPodStatus.
func (s *Server) PatchPodStatus(namespace, name string, uid types.UID, base, status *v1.PodStatus) (*v1.Pod, error) {
	return s.store.PatchPodStatus(s.now(), namespace, name, uid, base, status)
}

// CreateEvent is Store.CreateEvent.
func (s *Server) CreateEvent(ev *v1.Event) (*v1.Event, error) {
	return s.store.CreateEvent(s.now(), ev)
}

// PostEvent is Store.PostEvent.
func (s *Server) PostEvent(ev *v1.Event) error { return s.store.PostEvent(s.now(), ev) }

// PatchEvent is Store.PatchEvent.
func (s *Server) PatchEvent(base, ev *v1.Event) (*v1.Event, error) {
	return s.store.PatchEvent(s.now(), base, ev)
}

// NewTemplate is Store.NewTemplate.
func (s *Server) NewTemplate(pod *v1.Pod) (*store.Template, error) { return s.store.NewTemplate(pod) }

// Stale is Store.Stale.
func (s *Server) Stale(t *store.Template) bool { return s.store.Stale(t) }

// CreateFromTemplate is Store.CreateFromTemplate.
func (s *Server) CreateFromTemplate(t *store.Template, st store.Stamp) (*v1.Pod, error) {
	return s.store.CreateFromTemplate(s.now(), t, st)
}

// Get is Store.Get.
func (s *Server) Get(k Kind, namespace, name string) (Object, error) {
	return s.store.Get(k, namespace, name)
}

// List is Store.List.
func (s *Server) List(k Kind, namespace string) ([]Object, error) {
	return s.store.List(k, namespace)
}

// Pod returns a pod, or nil.
func (s *Server) Pod(namespace, name string) *v1.Pod { return s.store.Pod(namespace, name) }

// Node returns a node, or nil.
func (s *Server) Node(name string) *v1.Node { return s.store.Node(name) }

// Pods is Store.Pods.
func (s *Server) Pods() []*v1.Pod { return s.store.Pods() }

// Nodes is Store.Nodes.
func (s *Server) Nodes() []*v1.Node { return s.store.Nodes() }

// Events is Store.Events.
func (s *Server) Events() []*v1.Event { return s.store.Events() }

// FinalizeNamespace is Store.FinalizeNamespace.
func (s *Server) FinalizeNamespace(name string) error { return s.store.FinalizeNamespace(name) }

// Evict is Store.Evict.
func (s *Server) Evict(namespace, name string, opts metav1.DeleteOptions) error {
	return s.store.Evict(s.now(), namespace, name, opts)
}

// GetScale is Store.GetScale.
func (s *Server) GetScale(k Kind, namespace, name string) (*autoscalingv1.Scale, error) {
	return s.store.GetScale(k, namespace, name)
}

// UpdateScale is Store.UpdateScale now.
func (s *Server) UpdateScale(k Kind, scale *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	return s.store.UpdateScale(s.now(), k, scale)
}

// TaintNewNodes is Store.TaintNewNodes.
func (s *Server) TaintNewNodes() { s.store.TaintNewNodes() }

// PatchNode is Store.PatchNode of a server.
func PatchNode(s *Server, name string, base, node *v1.Node) (*v1.Node, error) {
	return s.store.PatchNode(s.now(), name, base, node)
}

// PatchNodeTaints is Store.PatchNodeTaints.
func (s *Server) PatchNodeTaints(name, resourceVersion string, taints []v1.Taint) (*v1.Node, error) {
	return s.store.PatchNodeTaints(s.now(), name, resourceVersion, taints)
}

// PatchPodMeta is Store.PatchPodMeta now.
func (s *Server) PatchPodMeta(namespace, name string, uid types.UID, edit func(*metav1.ObjectMeta)) (*v1.Pod, error) {
	return s.store.PatchPodMeta(s.now(), namespace, name, uid, edit)
}

// PatchMeta is Store.PatchMeta.
func (s *Server) PatchMeta(k Kind, namespace, name string, uid types.UID, p store.MetaPatch) error {
	return s.store.PatchMeta(k, namespace, name, uid, p)
}

// userName returns who has sent the request that is being handled, by the names
// of upstream's authentication.
func (s *Server) userName() string {
	switch name := s.store.CallerName(); {
	case name != "":
		return name
	case s.by != "":
		return nodeUser + s.by
	case s.component == "":
		return "kubernetes-admin"
	default:
		return componentUser(s.component)
	}
}

// nodeUser and a node's name are its kubelet's user.
const nodeUser = "system:node:"

// componentUser is a component's user; a controller's is that of its service account
// (cmd/kube-controller-manager/app).
func componentUser(component string) string {
	const account = "system:serviceaccount:kube-system:"
	switch c := component; {
	case c == "node-lifecycle-controller":
		return account + "node-controller"
	case c == "pod-garbage-collector-controller":
		return account + "pod-garbage-collector"
	case c == "garbage-collector-controller":
		return account + "generic-garbage-collector"
	case c == "horizontal-pod-autoscaler-controller":
		return account + "horizontal-pod-autoscaler"
	case c == "daemonset-controller":
		return account + "daemon-set-controller"
	case strings.HasSuffix(c, "-controller"):
		return account + c
	default:
		return "system:" + c
	}
}

// askerOf is who a user is to flow control, with the groups of its name.
func askerOf(name string) *flow.Asker {
	groups := []string{user.AllAuthenticated}
	if namespace, account, err := serviceaccount.SplitUsername(name); err == nil && account != "" {
		groups = append(serviceaccount.MakeGroupNames(namespace), groups...)
	}
	return &flow.Asker{User: name, Groups: groups}
}
