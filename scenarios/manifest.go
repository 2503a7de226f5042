package scenarios

import (
	"path/filepath"
	"reflect"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
)

// listKind is what stands for its items.
const listKind = "List"

// manifestKind is a kind of object that manifests may have.
type manifestKind struct {
	apiVersion string
	namespaced bool
	make       func() runtime.Object
}

func manifestKinds() map[string]manifestKind {
	return map[string]manifestKind{
		"Pod":           {"v1", true, func() runtime.Object { return &v1.Pod{} }},
		"Node":          {"v1", false, func() runtime.Object { return &v1.Node{} }},
		"ConfigMap":     {"v1", true, func() runtime.Object { return &v1.ConfigMap{} }},
		"Secret":        {"v1", true, func() runtime.Object { return &v1.Secret{} }},
		"Namespace":     {"v1", false, func() runtime.Object { return &v1.Namespace{} }},
		"Service":       {"v1", true, func() runtime.Object { return &v1.Service{} }},
		"RuntimeClass":  {"node.k8s.io/v1", false, func() runtime.Object { return &nodev1.RuntimeClass{} }},
		"PriorityClass": {"scheduling.k8s.io/v1", false, func() runtime.Object { return &schedulingv1.PriorityClass{} }},

		"Deployment":              {"apps/v1", true, func() runtime.Object { return &appsv1.Deployment{} }},
		"ReplicaSet":              {"apps/v1", true, func() runtime.Object { return &appsv1.ReplicaSet{} }},
		"StatefulSet":             {"apps/v1", true, func() runtime.Object { return &appsv1.StatefulSet{} }},
		"DaemonSet":               {"apps/v1", true, func() runtime.Object { return &appsv1.DaemonSet{} }},
		"Job":                     {"batch/v1", true, func() runtime.Object { return &batchv1.Job{} }},
		"CronJob":                 {"batch/v1", true, func() runtime.Object { return &batchv1.CronJob{} }},
		"PodDisruptionBudget":     {"policy/v1", true, func() runtime.Object { return &policyv1.PodDisruptionBudget{} }},
		"HorizontalPodAutoscaler": {"autoscaling/v2", true, func() runtime.Object { return &autoscalingv2.HorizontalPodAutoscaler{} }},
		"EndpointSlice":           {"discovery.k8s.io/v1", true, func() runtime.Object { return &discoveryv1.EndpointSlice{} }},
	}
}

// written is an object and the node that it came from, for the API's
// validation.
type written struct {
	obj  runtime.Object
	node *yaml.Node
	path *path
	file string
}

// manifest decodes objects that are written in place. A text is taken as it is.
func (d *decoder) manifest(n *yaml.Node, p *path, x *Manifest) {
	switch n.Kind {
	case yaml.ScalarNode:
		if s, ok := d.text(n, p); ok {
			x.Content = []byte(s)
		}
		return
	case yaml.SequenceNode:
		for i, e := range n.Content {
			x.Objects = d.object(e, p.at(i), x.Objects)
		}
	default:
		x.Objects = d.object(n, p, x.Objects)
	}
	x.Content, _ = yaml.Marshal(n)
}

// object decodes one object, or those of a List, strictly, and appends what it is.
func (d *decoder) object(n *yaml.Node, p *path, to []Object) []Object {
	if n.Kind != yaml.MappingNode {
		d.mismatch(n, p, "a Kubernetes object")
		return to
	}
	kinds := manifestKinds()
	var names []string
	for name := range kinds { //drydock:unordered sorted below
		names = append(names, name)
	}
	sort.Strings(names)
	kind, ok := d.header(n, p, "kind")
	if !ok {
		return to
	}
	if kind == listKind {
		return d.list(n, p, to)
	}
	k, ok := kinds[kind]
	if !ok {
		d.errorf(lookup(n, "kind"), p.field("kind"), "kind %q is none of %s%s", short(kind), strings.Join(names, ", "), suggest.Suffix(kind, names))
		return to
	}
	version, ok := d.header(n, p, "apiVersion")
	if !ok {
		return to
	}
	if version != k.apiVersion {
		d.errorf(lookup(n, "apiVersion"), p.field("apiVersion"), "the apiVersion of a %s is %s, not %q", kind, k.apiVersion, short(version))
		return to
	}
	obj := k.make()
	before := len(d.l.errs)
	d.value(n, p, reflect.ValueOf(obj).Elem())
	if m, ok := obj.(metav1.Object); ok && k.namespaced && m.GetNamespace() == "" {
		m.SetNamespace(metav1.NamespaceDefault)
	}
	// What could not be decoded is not worth validating.
	if len(d.l.errs) == before {
		d.l.written = append(d.l.written, written{obj, n, p, d.file})
	}
	return append(to, Object{obj, d.pos(n)})
}

// manifestList is a List (k8s.io/api/core/v1, with objects of any kind).
type manifestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []any `json:"items"` // looked at one by one
}

// list decodes the items of a List and appends them.
func (d *decoder) list(n *yaml.Node, p *path, to []Object) []Object {
	if version, ok := d.header(n, p, "apiVersion"); ok && version != "v1" {
		d.errorf(lookup(n, "apiVersion"), p.field("apiVersion"), "the apiVersion of a List is v1, not %q", short(version))
	}
	d.value(n, p, reflect.ValueOf(&manifestList{}).Elem())
	if items := lookup(n, "items"); items != nil && items.Kind == yaml.SequenceNode {
		for i, e := range items.Content {
			to = d.object(e, p.field("items").at(i), to)
		}
	}
	return to
}

func (d *decoder) header(n *yaml.Node, p *path, key string) (string, bool) {
	v := lookup(n, key)
	if v == nil || v.Kind != yaml.ScalarNode || v.Value == "" {
		d.errorf(n, p.field(key), "must be set")
		return "", false
	}
	return v.Value, true
}

// manifestFile decodes the objects of a file that a scenario names, relative
// to the scenario's own file.
func (d *decoder) manifestFile(n *yaml.Node, p *path, name string, to []Object) []Object {
	file := name
	if !filepath.IsAbs(name) {
		file = filepath.Join(filepath.Dir(d.file), name)
	}
	data, err := d.l.opts.ReadFile(file)
	if err != nil {
		d.errorf(n, p, "cannot read the file: %v", err)
		return to
	}
	fd := &decoder{l: d.l, file: file}
	before := len(d.l.errs)
	docs := d.l.parseYAML(file, data)
	if len(docs) == 0 && len(d.l.errs) == before {
		d.errorf(n, p, "%s has no objects", name)
	}
	for _, doc := range docs {
		if doc.Kind == yaml.SequenceNode {
			for i, e := range doc.Content {
				to = fd.object(e, (&path{}).at(i), to)
			}
			continue
		}
		to = fd.object(doc, &path{}, to)
	}
	return to
}
