package parity

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// pluginPlay is a replay in progress.
type pluginPlay struct {
	c       *PluginCase
	cluster *sim.Cluster
	node    *sim.Node
	failed  error
}

// pluginAction says how an action is done: through the API, or on the node, where its
// plugins are. Exactly one of api and node is set.
type pluginAction struct {
	api, node func(p *pluginPlay, a *PluginAction) error
}

// pluginActions are those that recordings have, by name.
var pluginActions = map[string]pluginAction{
	"create": {api: func(p *pluginPlay, a *PluginAction) error {
		_, err := p.cluster.API().Create(a.Pod.Pod.DeepCopy())
		return err
	}},
	"delete": {api: func(p *pluginPlay, a *PluginAction) error {
		return p.cluster.API().Delete(apiserver.KindPod, podNamespace(a), a.Name, metav1.DeleteOptions{GracePeriodSeconds: a.GracePeriodSeconds})
	}},
	"bind": {api: func(p *pluginPlay, a *PluginAction) error {
		_, err := p.cluster.API().Bind(podNamespace(a), a.Pod.Name, recordedNode, metav1.ObjectMeta{})
		return err
	}},
	"pod-status": {api: func(p *pluginPlay, a *PluginAction) error {
		status := slices.Concat([]byte(`{"status":`), a.Patch, []byte(`}`))
		_, err := p.cluster.API().Patch(apiserver.KindPod, podNamespace(a), a.Pod.Name, types.StrategicMergePatchType, status, "status")
		return err
	}},
	"object": {api: (*pluginPlay).createObject},
	"object-patch": {api: func(p *pluginPlay, a *PluginAction) error {
		at, err := p.objectAt(a.Path)
		if err == nil {
			_, err = p.cluster.API().Patch(at.kind, at.namespace, at.name, types.MergePatchType, a.Patch, at.sub)
		}
		return err
	}},
	"object-delete": {api: func(p *pluginPlay, a *PluginAction) error {
		at, err := p.objectAt(a.Path)
		if err == nil {
			err = p.cluster.API().Delete(at.kind, at.namespace, at.name, metav1.DeleteOptions{})
		}
		return err
	}},
	"kubelet-kill":  {node: func(p *pluginPlay, _ *PluginAction) error { p.node.StopKubelet(); return nil }},
	"kubelet-start": {node: func(p *pluginPlay, _ *PluginAction) error { p.node.StartKubelet(); return nil }},

	"volume":    {api: (*pluginPlay).createVolume},
	"csi-start": {node: (*pluginPlay).startCSI},
	"csi-stop":  {node: func(p *pluginPlay, a *PluginAction) error { return p.node.Plugins().StopDriver(a.Driver) }},
	"csi-set":   {node: func(p *pluginPlay, a *PluginAction) error { return p.node.Plugins().SetCSI(a.Driver, a.MaxVolumes) }},
	"attacher":  {api: (*pluginPlay).startAttacher},
	"claim":     {api: (*pluginPlay).createClaim},
	"reserve":   {api: (*pluginPlay).reserve},
	"dra-start": {node: (*pluginPlay).startDRA},
	"dra-stop":  {node: func(p *pluginPlay, a *PluginAction) error { return p.node.Plugins().StopDriver(a.Driver) }},

	"dra-set": {node: func(p *pluginPlay, a *PluginAction) error {
		return p.node.Plugins().SetHealth(a.Driver, healthReports(a.Health))
	}},

	"rules":     {node: (*pluginPlay).addRules},
	"dev-start": {node: (*pluginPlay).startDevice},
	"dev-set": {node: func(p *pluginPlay, a *PluginAction) error {
		return p.node.Plugins().SetDevices(a.Resource, scriptedDevices(a.Devices))
	}},
	"dev-stop": {node: func(p *pluginPlay, a *PluginAction) error { return p.node.Plugins().StopDevice(a.Resource) }},
}

func podNamespace(a *PluginAction) string {
	if a.Namespace != "" {
		return a.Namespace
	}
	return v1.NamespaceDefault
}

// place is an object's, or a kind's if it has no name.
type place struct {
	kind                 apiserver.Kind
	gvk                  metav1.TypeMeta
	namespace, name, sub string
}

// objectAt reads a path of the API.
func (p *pluginPlay) objectAt(path string) (place, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	at, group := place{}, ""
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		at.gvk.APIVersion, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		group = parts[1]
		at.gvk.APIVersion, parts = parts[1]+"/"+parts[2], parts[3:]
	default:
		return at, fmt.Errorf("path: %q is none of the API's", path)
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		at.namespace, parts = parts[1], parts[2:]
	}
	for _, row := range p.cluster.API().Store().Kinds().All() {
		if row.Resource == parts[0] && row.Group == group {
			at.kind, at.gvk.Kind = row.Kind, row.GroupKind().Kind
		}
	}
	if at.kind == "" {
		return at, fmt.Errorf("path: there is no resource %q", parts[0])
	}
	if len(parts) > 1 {
		at.name = parts[1]
	}
	if len(parts) > 2 {
		at.sub = parts[2]
	}
	return at, nil
}

// createObject is object: a POST.
func (p *pluginPlay) createObject(a *PluginAction) error {
	at, err := p.objectAt(a.Path)
	if err != nil {
		return err
	}
	fields := object{}
	if err := json.Unmarshal(a.Object, &fields); err != nil {
		return fmt.Errorf("object: %w", err)
	}
	fields["apiVersion"], fields["kind"] = at.gvk.APIVersion, at.gvk.Kind
	obj, err := p.cluster.API().Store().Kinds().Decode(encode(fields))
	if err != nil {
		return fmt.Errorf("object: %w", err)
	}
	if at.namespace != "" {
		obj.SetNamespace(at.namespace)
	}
	_, err = p.cluster.API().Create(obj)
	return err
}

// schedule has an action done at its time. What was gone already when it was to be
// deleted, was so for who recorded, too.
func (p *pluginPlay) schedule(a *PluginAction) {
	kind, at := pluginActions[a.word()], pluginsUpBefore+seconds(a.At)
	if a.Action == "kubelet-start" {
		at += kubeletExec
	}
	schedule, do := p.node.At, kind.node
	if do == nil {
		schedule, do = p.cluster.At, kind.api
	}
	schedule(at, func() {
		err := do(p, a)
		if err != nil && !apierrors.IsNotFound(err) {
			p.failed = errors.Join(p.failed, fmt.Errorf("%s at %vs: %w", a.word(), a.At, err))
		}
	})
}
