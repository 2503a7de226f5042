package action

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// This file has what a chart's Jobs and controllers would make, which do nothing in a simulation:
// certificates of a webhook, passwords, and whatever else pods wait for.

// implied are Secrets or ConfigMaps that pods need and no manifest has: by namespace and name
// their keys.
type implied map[[2]string]map[string]bool

func (m implied) need(namespace, name string, optional *bool, keys ...string) {
	if name == "" || optional != nil && *optional {
		return
	}
	key := [2]string{namespace, name}
	if m[key] == nil {
		m[key] = map[string]bool{}
	}
	for _, k := range keys {
		m[key][k] = true
	}
}

// applyImplied makes the Secrets and ConfigMaps that pods of the objects can't start without and
// that are neither there nor among the objects, if something among them could be their maker: a
// Job, or a custom resource. Without one, pods wait for what is missing, as they would.
func applyImplied(s Stage, objects []value.Object) error {
	made := false
	secrets, configs := implied{}, implied{}
	for _, o := range objects {
		obj, ok := o.Object.(apiserver.Object)
		if !ok {
			continue
		}
		switch o.Object.(type) {
		case *batchv1.Job, *unstructured.Unstructured:
			made = true
		}
		if spec := podSpecOf(o.Object); spec != nil {
			references(namespaceOf(obj), spec, secrets, configs)
		}
	}
	if !made || len(secrets)+len(configs) == 0 {
		return nil
	}
	// A chart brings some of them itself.
	for _, o := range objects {
		switch x := o.Object.(type) {
		case *v1.Secret:
			delete(secrets, [2]string{namespaceOf(x), x.Name})
		case *v1.ConfigMap:
			delete(configs, [2]string{namespaceOf(x), x.Name})
		}
	}
	var names []string
	do := func(kind apiserver.Kind, m implied, object func(meta metav1.ObjectMeta, keys []string) apiserver.Object) error {
		for _, key := range slices.SortedFunc(maps.Keys(m), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) { //drydock:unordered sorted at once
			if s.Cluster().Store().Lookup(kind, key[0], key[1]) != nil {
				continue
			}
			keys := slices.Sorted(maps.Keys(m[key])) //drydock:unordered sorted at once
			obj := object(metav1.ObjectMeta{Namespace: key[0], Name: key[1]}, keys)
			if err := applyOne(s, obj, s.Cluster().Store().Kinds().Of(obj)); err != nil {
				return err
			}
			names = append(names, strings.ToLower(string(kind))+" "+key[0]+"/"+key[1])
		}
		return nil
	}
	if err := do(apiserver.KindSecret, secrets, func(meta metav1.ObjectMeta, keys []string) apiserver.Object {
		x := &v1.Secret{ObjectMeta: meta, Data: map[string][]byte{}}
		for _, k := range keys {
			x.Data[k] = []byte{}
		}
		return x
	}); err != nil {
		return err
	}
	if err := do(apiserver.KindConfigMap, configs, func(meta metav1.ObjectMeta, keys []string) apiserver.Object {
		x := &v1.ConfigMap{ObjectMeta: meta, Data: map[string]string{}}
		for _, k := range keys {
			x.Data[k] = ""
		}
		return x
	}); err != nil {
		return err
	}
	if len(names) > 0 {
		s.Warn("no manifest has what pods need: " + strings.Join(names, ", ") + "; made with empty values, as a Job or a controller would make them")
	}
	return nil
}

func namespaceOf(o metav1.Object) string {
	if ns := o.GetNamespace(); ns != "" {
		return ns
	}
	return metav1.NamespaceDefault
}

// podSpecOf is the spec of the pods that come of an object; nil of what makes none.
func podSpecOf(o runtime.Object) *v1.PodSpec {
	switch o := o.(type) {
	case *v1.Pod:
		return &o.Spec
	case *appsv1.Deployment:
		return &o.Spec.Template.Spec
	case *appsv1.ReplicaSet:
		return &o.Spec.Template.Spec
	case *appsv1.StatefulSet:
		return &o.Spec.Template.Spec
	case *appsv1.DaemonSet:
		return &o.Spec.Template.Spec
	case *batchv1.Job:
		return &o.Spec.Template.Spec
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template.Spec
	}
	return nil
}

// references adds what a pod can't start without.
func references(namespace string, spec *v1.PodSpec, secrets, configs implied) {
	keysOf := func(items []v1.KeyToPath) (keys []string) {
		for _, it := range items {
			keys = append(keys, it.Key)
		}
		return keys
	}
	for i := range spec.Volumes {
		switch v := &spec.Volumes[i]; {
		case v.Secret != nil:
			secrets.need(namespace, v.Secret.SecretName, v.Secret.Optional, keysOf(v.Secret.Items)...)
		case v.ConfigMap != nil:
			configs.need(namespace, v.ConfigMap.Name, v.ConfigMap.Optional, keysOf(v.ConfigMap.Items)...)
		case v.Projected != nil:
			for _, src := range v.Projected.Sources {
				if x := src.Secret; x != nil {
					secrets.need(namespace, x.Name, x.Optional, keysOf(x.Items)...)
				}
				// Each namespace gets its own of the cluster's certificate.
				if x := src.ConfigMap; x != nil && x.Name != "kube-root-ca.crt" {
					configs.need(namespace, x.Name, x.Optional, keysOf(x.Items)...)
				}
			}
		}
	}
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			for _, from := range list[i].EnvFrom {
				if x := from.SecretRef; x != nil {
					secrets.need(namespace, x.Name, x.Optional)
				}
				if x := from.ConfigMapRef; x != nil {
					configs.need(namespace, x.Name, x.Optional)
				}
			}
			for _, e := range list[i].Env {
				if e.ValueFrom == nil {
					continue
				}
				if x := e.ValueFrom.SecretKeyRef; x != nil {
					secrets.need(namespace, x.Name, x.Optional, x.Key)
				}
				if x := e.ValueFrom.ConfigMapKeyRef; x != nil {
					configs.need(namespace, x.Name, x.Optional, x.Key)
				}
			}
		}
	}
}
