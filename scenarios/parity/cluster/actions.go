package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// need is a field that an action cannot do without. It makes errors of a recording name what is
// missing.
type need struct {
	field string
	given func(a *Action) bool
}

var (
	needObject   = need{"object", func(a *Action) bool { return len(a.Object) > 0 }}
	needTarget   = need{"kind and name, or pod", func(a *Action) bool { return a.Pod != nil || a.Kind != "" && a.Name != "" }}
	needPod      = need{"pod", func(a *Action) bool { return a.Pod != nil }}
	needPatch    = need{"patch", func(a *Action) bool { return len(a.Patch) > 0 }}
	needReplicas = need{"replicas", func(a *Action) bool { return a.Replicas != nil }}
	needNode     = need{"node", func(a *Action) bool { return a.Node != "" }}
	needGroup    = need{"group", func(a *Action) bool { return a.Group != nil }}
	needLabels   = need{"labels", func(a *Action) bool { return len(a.Labels) > 0 }}
	needTaint    = need{"taint", func(a *Action) bool { return a.Taint != nil }}
	needApp      = need{"app", func(a *Action) bool { return a.App != "" }}
	needCond     = need{"condition", func(a *Action) bool { return a.Condition != nil }}
)

// actionKind says how an action is done. do runs on the API's loop; it is nil for what is done while
// nothing runs.
type actionKind struct {
	do    func(p *play, a *Action) error
	needs []need
	// node is what is done to the node of the action, on its loop; it may be nil.
	node func(n *sim.Node)
	// answered says that the answer is kept, and not only a refusal.
	answered bool
}

// actions are those that recordings have, by name.
var actions = map[string]actionKind{
	"create":         {do: (*play).create, needs: []need{needObject}},
	"patch":          {do: (*play).patch, needs: []need{needTarget, needPatch}},
	"scale":          {do: (*play).scale, needs: []need{needTarget, needReplicas}},
	"delete":         {do: (*play).delete, needs: []need{needTarget}},
	"evict":          {do: (*play).evict, needs: []need{needPod}, answered: true},
	"node-down":      {do: (*play).nodeDown, node: (*sim.Node).StopKubelet, needs: []need{needNode}},
	"node-up":        {do: nothing, node: (*sim.Node).StartKubelet, needs: []need{needNode}},
	"node-not-ready": {do: (*play).nodeNotReady, needs: []need{needNode}},
	"node-ready":     {do: (*play).nodeReady, needs: []need{needNode}},
	"node-condition": {do: (*play).nodeCondition, needs: []need{needNode, needCond}},
	"node-add":       {needs: []need{needGroup}},
	"cordon":         {do: cordon(true), needs: []need{needNode}},
	"uncordon":       {do: cordon(false), needs: []need{needNode}},
	"label":          {do: (*play).label, needs: []need{needNode, needLabels}},
	"taint":          {do: (*play).taint, needs: []need{needNode, needTaint}},
	"usage":          {do: (*play).setUsage, needs: []need{needApp}},
}

// act does an action and keeps its answer, where recordings have it. An action that fails although
// the recorded one didn't is a refusal like any other: the referee tells.
func (p *play) act(a *Action, kind actionKind) {
	err := kind.do(p, a)
	var status apierrors.APIStatus
	if err != nil && !errors.As(err, &status) {
		p.note(fmt.Errorf("%s at %vs: %w", a.Do, a.At, err))
		return
	}
	if err != nil || kind.answered {
		p.o.answer(a, status)
	}
}

// target is the object that an action is about.
func (p *play) target(a *Action) (kind apiserver.Kind, ns, name string, err error) {
	ns = a.Namespace
	if ns == "" {
		ns = recordedNamespace
	}
	if a.Pod != nil {
		pod, err := p.choose(ns, a.Pod)
		if err != nil {
			return "", "", "", err
		}
		return apiserver.KindPod, ns, pod.Name, nil
	}
	kind, name = apiserver.Kind(a.Kind), a.Name
	if !p.cluster.Store().Kinds().Namespaced(kind) {
		ns = ""
	}
	if d, ok := strings.CutPrefix(name, "$rs:"); ok {
		name, err = p.replicaSetOf(ns, d)
	}
	return kind, ns, name, err
}

// replicaSetOf is the ReplicaSet of a Deployment: the newest, if there are several.
func (p *play) replicaSetOf(ns, deployment string) (string, error) {
	name := ""
	for _, rs := range apiserver.Objects[*appsv1.ReplicaSet](p.cluster.Store(), apiserver.KindReplicaSet) {
		if ref := metav1.GetControllerOf(rs); rs.Namespace == ns && ref != nil && ref.Name == deployment {
			name = rs.Name
		}
	}
	if name == "" {
		return "", fmt.Errorf("deployment %s has no replica set", deployment)
	}
	return name, nil
}

// ownedAs reports whether a controller's name is one that an action means by owner.
func ownedAs(name, owner string) bool { return name == owner || strings.HasPrefix(name, owner+"-") }

func (p *play) create(a *Action) error {
	data := a.Object
	if p.c.probed() {
		data = addProbes(data)
	}
	obj, err := p.cluster.Store().Kinds().Decode(p.withUIDs(data))
	if err != nil {
		return err
	}
	if obj.GetNamespace() == "" && p.cluster.Store().Kinds().Of(obj).Namespaced {
		obj.SetNamespace(recordedNamespace)
	}
	_, err = p.cluster.API().Create(obj)
	return err
}

// withUIDs puts uids in the place of $uid:KIND/NAME.
func (p *play) withUIDs(data []byte) []byte {
	const mark = `"$uid:`
	for {
		at := bytes.Index(data, []byte(mark))
		if at < 0 {
			return data
		}
		end := at + 1 + bytes.IndexByte(data[at+1:], '"')
		kind, name, _ := strings.Cut(string(data[at+len(mark):end]), "/")
		uid := ""
		if obj, err := p.cluster.API().Get(apiserver.Kind(kind), recordedNamespace, name); err == nil {
			uid = string(obj.GetUID())
		}
		data = slices.Concat(data[:at+1], []byte(uid), data[end:])
	}
}

func (p *play) patch(a *Action) error {
	kind, ns, name, err := p.target(a)
	if err != nil {
		return err
	}
	t, data := types.StrategicMergePatchType, []byte(a.Patch)
	switch a.Type {
	case "merge":
		t = types.MergePatchType
	case "json":
		t = types.JSONPatchType
	}
	if p.c.probed() && t != types.JSONPatchType {
		data = addProbes(data)
	}
	_, err = p.cluster.API().Patch(kind, ns, name, t, p.withUIDs(data), a.Subresource)
	return err
}

func (p *play) scale(a *Action) error {
	kind, ns, name, err := p.target(a)
	if err != nil {
		return err
	}
	api := p.cluster.API()
	scale, err := api.GetScale(kind, ns, name)
	if err != nil {
		return err
	}
	scale = scale.DeepCopy()
	scale.Spec.Replicas, scale.ResourceVersion = *a.Replicas, ""
	_, err = api.UpdateScale(kind, scale)
	return err
}

func (p *play) delete(a *Action) error {
	kind, ns, name, err := p.target(a)
	if err != nil {
		return err
	}
	opts := metav1.DeleteOptions{GracePeriodSeconds: a.GracePeriodSeconds}
	if a.PropagationPolicy != nil {
		policy := metav1.DeletionPropagation(*a.PropagationPolicy)
		opts.PropagationPolicy = &policy
	}
	return p.cluster.API().Delete(kind, ns, name, opts)
}

func (p *play) evict(a *Action) error {
	_, ns, name, err := p.target(a)
	if err != nil {
		return err
	}
	return p.cluster.API().Evict(ns, name, metav1.DeleteOptions{GracePeriodSeconds: a.GracePeriodSeconds})
}

// renew renews a node's lease now.
func (p *play) renew(node string) error {
	data, err := json.Marshal(object{"spec": object{"renewTime": metav1.NewMicroTime(p.cluster.API().Loop().Now())}})
	if err != nil {
		return err
	}
	_, err = p.cluster.API().Patch(apiserver.KindLease, v1.NamespaceNodeLease, node, types.MergePatchType, data, "")
	return err
}

// nodeDown renews the lease of a node whose kubelet stops. Its containers live.
func (p *play) nodeDown(a *Action) error { return p.renew(a.Node) }

// nothing is what is done through the API where all is done on the node.
func nothing(*play, *Action) error { return nil }

// nodeNotReady has a node say what a kubelet would half a minute after its runtime went down.
func (p *play) nodeNotReady(a *Action) error {
	return p.post(a.Node, v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionFalse, Reason: "KubeletNotReady", Message: "container runtime is down"})
}

// nodeReady has the node's kubelet be heard again.
func (p *play) nodeReady(a *Action) error {
	err := p.post(a.Node, v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"})
	if heard := p.stated[a.Node]; heard != nil {
		delete(p.stated, a.Node)
		heard()
	}
	return err
}

// nodeCondition posts a condition in the node's name.
func (p *play) nodeCondition(a *Action) error { return p.post(a.Node, *a.Condition) }

// post states a condition of a node.
func (p *play) post(node string, cond v1.NodeCondition) error {
	now := metav1.NewTime(p.cluster.API().Loop().Now())
	cond.LastHeartbeatTime, cond.LastTransitionTime = now, now
	return p.state(node, object{"conditions": []v1.NodeCondition{cond}})
}

func cordon(on bool) func(p *play, a *Action) error {
	return func(p *play, a *Action) error {
		var value any // null removes it, as kubectl does
		if on {
			value = true
		}
		return p.patchNode(a.Node, object{"spec": object{"unschedulable": value}}, "")
	}
}

func (p *play) label(a *Action) error {
	return p.patchNode(a.Node, object{"metadata": object{"labels": a.Labels}}, "")
}

// taint puts a taint on a node or takes it away. One with the same key and effect is replaced.
func (p *play) taint(a *Action) error {
	api := p.cluster.API()
	n := api.Node(a.Node)
	if n == nil {
		return fmt.Errorf("there is no node %s", a.Node)
	}
	n = n.DeepCopy()
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t v1.Taint) bool {
		return t.Key == a.Taint.Key && (t.Effect == a.Taint.Effect || a.Remove && a.Taint.Effect == "")
	})
	if !a.Remove {
		n.Spec.Taints = append(n.Spec.Taints, *a.Taint)
	}
	_, err := api.Update(n, "")
	return err
}

func (p *play) setUsage(a *Action) error { return p.usage.set(a.App, a.CPU, a.Memory) }
