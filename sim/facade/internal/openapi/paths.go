package openapi

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// style is how a version of OpenAPI says things.
type style struct {
	prefix string // of references
	v3     bool
}

// metaName begins the names of the types that all kinds share.
const metaName = "io.k8s.apimachinery.pkg.apis.meta.v1."

// patchTypes are the media types of patches.
var patchTypes = []string{string(types.ApplyCBORPatchType), string(types.ApplyYAMLPatchType), string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType)}

// mediaTypes are those of objects.
var mediaTypes = []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor"}

// verb is what a method of a path does, in the words of upstream's documents
// (k8s.io/apiserver/pkg/endpoints/installer.go).
type verb struct {
	method, action, id string
	list               bool     // the path names no object
	query              []string // parameters, beside those of the path
	takes, gives       string   // "": the kind
}

var createQuery = []string{"dryRun", "fieldManager", "fieldValidation"}

// verbs are what can be done, by discovery's name.
var verbs = map[string]verb{
	"create":           {method: "post", action: "post", id: "create", list: true, query: createQuery, takes: "kind"},
	"update":           {method: "put", action: "put", id: "replace", query: createQuery, takes: "kind"},
	"patch":            {method: "patch", action: "patch", id: "patch", query: append(createQuery[:3:3], "force"), takes: metaName + "Patch"},
	"get":              {method: "get", action: "get", id: "read"},
	"list":             {method: "get", action: "list", id: "list", list: true, query: []string{"allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch"}, gives: "list"},
	"delete":           {method: "delete", action: "delete", id: "delete", query: []string{"dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"}, takes: metaName + "DeleteOptions", gives: metaName + "Status"},
	"deletecollection": {method: "delete", action: "deletecollection", id: "deleteCollection", list: true, query: []string{"continue", "dryRun", "fieldSelector", "gracePeriodSeconds", "labelSelector", "limit", "orphanDependents", "propagationPolicy", "resourceVersion"}, takes: metaName + "DeleteOptions", gives: metaName + "Status"},
}

// queryTypes are the types of parameters that are not strings.
var queryTypes = map[string]string{
	"allowWatchBookmarks": "boolean", "force": "boolean", "orphanDependents": "boolean", "sendInitialEvents": "boolean", "watch": "boolean",
	"gracePeriodSeconds": "integer", "limit": "integer", "timeoutSeconds": "integer",
}

// paths are those of the built-in resources of a version.
func (d *Definitions) paths(v *Version, s style) map[string]any {
	out := map[string]any{}
	custom := map[string]bool{}
	for _, def := range v.Custom {
		custom[def.Spec.Names.Plural] = true
	}
	for _, r := range v.Resources {
		base, sub, _ := strings.Cut(r.Name, "/")
		gvk := v.WithKind(r.Kind)
		if r.Version != "" {
			gvk = schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
		}
		if custom[base] || d.kinds[gvk] == "" {
			continue
		}
		root, in := "/"+v.Path()+"/"+base, []string(nil)
		if r.Namespaced {
			d.addVerb(out, root, v, gvk, r, sub, "ForAllNamespaces", verbs["list"], nil, s)
			root, in = "/"+v.Path()+"/namespaces/{namespace}/"+base, []string{"namespace"}
		}
		for _, name := range r.Verbs {
			what, ok := verbs[name]
			if !ok {
				continue
			}
			path, params := root, in
			if !what.list || sub != "" {
				path, params = root+"/{name}", append([]string{"name"}, in...)
			}
			if sub != "" {
				path += "/" + sub
			}
			d.addVerb(out, path, v, gvk, r, sub, "", what, params, s)
		}
	}
	return out
}

// addVerb adds what a method of a path does.
func (d *Definitions) addVerb(out map[string]any, path string, v *Version, gvk schema.GroupVersionKind, r metav1.APIResource, sub, suffix string, what verb, params []string, s style) {
	if suffix != "" && (sub != "" || !slices.Contains(r.Verbs, "list")) {
		return
	}
	item, ok := out[path].(map[string]any)
	if !ok {
		item = map[string]any{"parameters": append(s.parameters(params, "path"), s.parameters([]string{"pretty"}, "query")...)}
		out[path] = item
	}
	group := cmp.Or(strings.Split(v.Group, ".")[0], "core")
	id := what.id + title(group) + title(v.Version)
	if r.Namespaced && suffix == "" {
		id += "Namespaced"
	}
	id += r.Kind + title(sub) + suffix
	op := map[string]any{
		"operationId": id, "tags": []string{group + "_" + v.Version},
		"x-kubernetes-action": what.action, "x-kubernetes-group-version-kind": map[string]string{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind},
		"parameters": s.parameters(what.query, "query"),
		"responses":  map[string]any{"200": s.response("OK", d.named(what.gives, gvk)), "401": map[string]any{"description": "Unauthorized"}},
	}
	if what.method == "post" || what.method == "put" {
		op["responses"].(map[string]any)["201"] = s.response("Created", d.named(what.gives, gvk))
	}
	if what.takes != "" {
		s.take(op, d.named(what.takes, gvk), what.method == "patch")
	}
	if !s.v3 {
		op["produces"], op["schemes"] = mediaTypes, []string{"https"}
	}
	item[what.method] = op
}

// named is the name of the definition that a verb's word stands for.
func (d *Definitions) named(word string, gvk schema.GroupVersionKind) string {
	switch word {
	case "", "kind":
		return d.kinds[gvk]
	case "list":
		return d.kinds[gvk] + "List"
	}
	return word
}

func (s style) ref(name string) map[string]any { return map[string]any{"$ref": s.prefix + name} }

// parameters are those of a place.
func (s style) parameters(names []string, in string) []any {
	out := []any{}
	for _, name := range names {
		typ := cmp.Or(queryTypes[name], "string")
		p := map[string]any{"name": name, "in": in, "uniqueItems": true}
		if in == "path" {
			p["required"] = true
		}
		if s.v3 {
			delete(p, "uniqueItems")
			p["schema"] = map[string]any{"type": typ, "uniqueItems": true}
		} else {
			p["type"] = typ
		}
		out = append(out, p)
	}
	return out
}

// response is an answer with an object.
func (s style) response(text, name string) map[string]any {
	if !s.v3 {
		return map[string]any{"description": text, "schema": s.ref(name)}
	}
	content := map[string]any{}
	for _, t := range mediaTypes {
		content[t] = map[string]any{"schema": s.ref(name)}
	}
	return map[string]any{"description": text, "content": content}
}

// take has an operation take a body.
func (s style) take(op map[string]any, name string, patch bool) {
	consumes := []string{"*/*"}
	if patch {
		consumes = patchTypes
	}
	if !s.v3 {
		op["consumes"] = consumes
		op["parameters"] = append(op["parameters"].([]any), map[string]any{"name": "body", "in": "body", "required": true, "schema": s.ref(name)})
		return
	}
	content := map[string]any{}
	for _, t := range consumes {
		content[t] = map[string]any{"schema": s.ref(name)}
	}
	op["requestBody"] = map[string]any{"content": content, "required": true}
}

// title has a word begin with a capital, as names of operations are put together.
func title(word string) string {
	if word == "" {
		return ""
	}
	return strings.ToUpper(word[:1]) + word[1:]
}
