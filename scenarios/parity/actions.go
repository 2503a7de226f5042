package parity

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// play is a replay in progress. It lives for one Replay.
type play struct {
	c       *Case
	cluster *sim.Cluster
	node    *sim.Node
	failed  error
}

// need is a field that an action cannot do without. It makes errors of a recording name what is
// missing.
type need struct {
	field string
	given func(a *Action) bool
}

var (
	needPod      = need{"pod", func(a *Action) bool { return a.Pod != nil }}
	needName     = need{"name", func(a *Action) bool { return a.Name != "" }}
	needPatch    = need{"patch", func(a *Action) bool { return len(a.Patch) > 0 }}
	needFile     = need{"file", func(a *Action) bool { return a.File != "" }}
	needManifest = need{"manifest", func(a *Action) bool { return len(a.Manifest) > 0 }}
)

// actionKind says how an action is done: through the API, or on the node. Exactly one of api and
// node is set.
type actionKind struct {
	api   func(p *play, a *Action, pod types.NamespacedName) error
	node  func(p *play, a *Action, pod types.NamespacedName) error
	ofPod bool
	needs []need
}

// actions are those that recordings have, by name. One that is done through the
// API runs on the API's loop, one on the node on the node's.
var actions = map[string]actionKind{
	"create": {needs: []need{needPod}, api: func(p *play, a *Action, _ types.NamespacedName) error {
		_, err := p.cluster.API().Create(a.Pod.DeepCopy())
		return err
	}},
	"delete": {ofPod: true, api: func(p *play, a *Action, pod types.NamespacedName) error {
		return p.cluster.API().Delete(apiserver.KindPod, pod.Namespace, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: a.GracePeriodSeconds})
	}},
	"configmap": {needs: []need{needName}, api: func(p *play, a *Action, _ types.NamespacedName) error {
		_, err := p.cluster.API().Create(configMap(a))
		return err
	}},
	"configmap-update": {needs: []need{needName}, api: func(p *play, a *Action, _ types.NamespacedName) error {
		_, err := p.cluster.API().Update(configMap(a), "")
		return err
	}},
	"patch":        {ofPod: true, needs: []need{needPatch}, api: patch(types.JSONPatchType, "")},
	"patch-status": {ofPod: true, needs: []need{needPatch}, api: patch(types.StrategicMergePatchType, "status")},
	"resize":       {ofPod: true, needs: []need{needPatch}, api: patch(types.StrategicMergePatchType, "resize")},
	"ephemeral":    {ofPod: true, needs: []need{needPatch}, api: patch(types.StrategicMergePatchType, "ephemeralcontainers")},

	"kubelet-kill":  {node: onNode((*sim.Node).StopKubelet)},
	"kubelet-start": {node: onNode((*sim.Node).StartKubelet)},
	"runtime-kill":  {node: onNode((*sim.Node).StopRuntime)},
	"runtime-start": {node: onNode((*sim.Node).StartRuntime)},
	"stop-all":      {node: onNode(func(n *sim.Node) { n.Runtime().StopAllOutside() })},
	"stop-container": {ofPod: true, node: func(p *play, a *Action, pod types.NamespacedName) error {
		return p.node.Runtime().StopContainerOutside(pod.String(), a.Container)
	}},
	"remove-container": {ofPod: true, node: func(p *play, a *Action, pod types.NamespacedName) error {
		if err := p.node.Runtime().RemoveContainerOutside(pod.String(), a.Container); err != nil {
			return err
		}
		return p.removeLogs(pod, a.Container)
	}},
	"stop-sandbox": {ofPod: true, node: func(p *play, _ *Action, pod types.NamespacedName) error {
		return p.node.Runtime().StopSandboxOutside(pod.String())
	}},
	"static-write": {needs: []need{needFile, needManifest}, node: func(p *play, a *Action, _ types.NamespacedName) error {
		return p.node.WriteStaticPod(a.File, a.Manifest)
	}},
	"static-remove": {needs: []need{needFile}, node: func(p *play, a *Action, _ types.NamespacedName) error {
		return p.node.RemoveStaticPod(a.File)
	}},
}

// removeLogs removes a container's log files. The recorder removed containers as crictl rm does,
// which takes their logs along; so the next container counts from 0 again.
func (p *play) removeLogs(pod types.NamespacedName, container string) error {
	files := p.node.FS()
	dirs, err := files.ReadDir(podLogs)
	if err != nil {
		return err
	}
	for _, d := range dirs {
		if !strings.HasPrefix(d.Name(), pod.Namespace+"_"+pod.Name+"_") {
			continue
		}
		dir := podLogs + "/" + d.Name() + "/" + container
		logs, err := files.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, l := range logs {
			if err := files.Remove(dir + "/" + l.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// podLogs is where the recorded kubelet has the logs of pods.
const podLogs = "/var/log/pods"

// onNode is an action on the node, which every case has one of.
func onNode(fn func(n *sim.Node)) func(p *play, a *Action, pod types.NamespacedName) error {
	return func(p *play, _ *Action, _ types.NamespacedName) error {
		fn(p.node)
		return nil
	}
}

// patch is an action that patches the case's pod.
func patch(t types.PatchType, subresource string) func(p *play, a *Action, pod types.NamespacedName) error {
	return func(p *play, a *Action, pod types.NamespacedName) error {
		_, err := p.cluster.API().Patch(apiserver.KindPod, pod.Namespace, pod.Name, t, a.Patch, subresource)
		return err
	}
}

// configMap is the object that an action about a configMap names.
func configMap(a *Action) *v1.ConfigMap {
	return &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(a), Name: a.Name}, Data: a.Data}
}

// schedule has action i done at its time after zero. Times of recordings are those at which the
// recorder acted, not when the kubelet noticed.
func (p *play) schedule(i int, zero time.Duration) {
	a := &p.c.Actions[i]
	kind := actions[a.Action]
	at := zero + seconds(a.At)
	// Both are ready for their clients only a while after their start.
	switch a.Action {
	case "runtime-start":
		at = zero + p.c.reconnects(i)
	case "kubelet-start":
		at += kubeletExec
	}
	schedule, do := p.node.At, kind.node
	if do == nil {
		schedule, do = p.cluster.At, kind.api
	}
	schedule(at, func() {
		err := do(p, a, p.c.target(a))
		if errors.Is(err, fakecri.ErrNothingThere) || a.Action == "delete" && apierrors.IsNotFound(err) && !a.RejectedByAPI {
			err = nil // who recorded asked for something that was gone, too
		}
		switch {
		// The first failure is kept: what follows may come of it.
		case p.failed != nil:
		case err == nil && a.RejectedByAPI:
			p.failed = fmt.Errorf("%s at %vs: is accepted; the recorded API server refused it", a.Action, a.At)
		case err != nil && !a.RejectedByAPI:
			p.failed = fmt.Errorf("%s at %vs: %w", a.Action, a.At, err)
		}
	})
}

// kubeletExec is how long the recorded kubelet took from its process's start to
// its pod sources': reading its flags and configuration, and connecting. It is measured from the
// recordings.
const kubeletExec = 270 * time.Millisecond

// reconnects is when the runtime is there again for the kubelet after the
// runtime-start that is action i. The recordings' proxy stood between the two,
// a gRPC client with its default back-off: while the runtime was down it tried
// after 1 s, and then each time after 1.6 times as long.
func (c *Case) reconnects(i int) time.Duration {
	start, try := c.Actions[i].At, 0.0
	for k := range c.Actions[:i] {
		if c.Actions[k].Action == "runtime-kill" {
			try = c.Actions[k].At
		}
	}
	// The tries count from the kill; the first after the start succeeds.
	for wait := 1.0; try < start; wait *= 1.6 {
		try += wait
	}
	return seconds(try)
}
