package parity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// keep returns what is compared of an answer:
//
//	code         its code
//	type         its code and headers
//	field:a.b    its code and this field of the body
//	shape        its code and the types of the body's fields
//	paths        of /, groups of /apis, aggregated of aggregated discovery: a line for each
//
// and otherwise all of it. What belongs to groups of example.com is left out of the
// last three, since others may have made it.
func keep(a Answer, what string) Answer {
	if _, ok := a["error"]; ok {
		return a
	}
	code := a["code"]
	switch kind, path, _ := strings.Cut(what, ":"); kind {
	case "code":
		return Answer{"code": code}
	case "type":
		out := Answer{}
		for _, k := range []string{"code", "headers", "binary"} {
			if v, ok := a[k]; ok {
				out[k] = v
			}
		}
		return out
	case "field":
		v, _ := dig(a["body"], path)
		return Answer{"code": code, "field": v}
	case "shape":
		shape := map[string]any{}
		for k, v := range object(a["body"]) {
			shape[k] = typeOf(v)
		}
		return Answer{"code": code, "shape": shape}
	case "paths":
		return Answer{"code": code, "headers": a["headers"], "paths": paths(a)}
	case "groups":
		return Answer{"code": code, "headers": a["headers"], "groups": groups(a)}
	case "aggregated":
		return Answer{"code": code, "headers": a["headers"], "resources": aggregated(a)}
	case "first-line":
		if s, ok := a["text"].(string); ok {
			out := Answer{}
			for k, v := range a {
				out[k] = v
			}
			out["text"], _, _ = strings.Cut(s, "\n")
			return out
		}
	}
	return a
}

// foreign is in the names of groups that cases make.
const foreign = "example.com"

func paths(a Answer) []any {
	var out []string
	for _, p := range list(object(a["body"])["paths"]) {
		if s := text(p); !strings.Contains(s, foreign) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return anys(out)
}

// groups has lines such as "apps v1 v1": name, versions, preferred version.
func groups(a Answer) []any {
	var out []string
	for _, v := range list(object(a["body"])["groups"]) {
		g := object(v)
		if strings.Contains(text(g["name"]), foreign) {
			continue
		}
		var versions []string
		for _, v := range list(g["versions"]) {
			versions = append(versions, text(object(v)["version"]))
		}
		out = append(out, text(g["name"])+" "+strings.Join(versions, ",")+" "+text(object(g["preferredVersion"])["version"]))
	}
	return anys(out)
}

// aggregated has lines such as "apps/v1/deployments Deployment Namespaced create,get deploy all",
// followed by one for each subresource.
func aggregated(a Answer) []any {
	var out []string
	line := func(parts ...string) { out = append(out, strings.TrimRight(strings.Join(parts, " "), " ")) }
	for _, v := range list(object(a["body"])["items"]) {
		group := text(object(object(v)["metadata"])["name"])
		if strings.Contains(group, foreign) {
			continue
		}
		for _, v := range list(object(v)["versions"]) {
			version := text(object(v)["version"])
			for _, v := range list(object(v)["resources"]) {
				r := object(v)
				path := group + "/" + version + "/" + text(r["resource"])
				line(path, text(object(r["responseKind"])["kind"]), text(r["scope"]), joined(r["verbs"], true), joined(r["shortNames"], false), joined(r["categories"], false))
				for _, v := range list(r["subresources"]) {
					line(path+"/"+text(object(v)["subresource"]), joined(object(v)["verbs"], true))
				}
			}
		}
	}
	return anys(out)
}

// joined is a list of texts with commas between them.
func joined(v any, sorted bool) string {
	var out []string
	for _, x := range list(v) {
		out = append(out, text(x))
	}
	if sorted {
		slices.Sort(out)
	}
	return strings.Join(out, ",")
}

// typeOf is a value's type, by the name that recordings have for it.
func typeOf(v any) string {
	switch x := v.(type) {
	case nil:
		return "NoneType"
	case string:
		return "str"
	case bool:
		return "bool"
	case json.Number:
		if strings.ContainsAny(x.String(), ".eE") {
			return "float"
		}
		return "int"
	case []any:
		return "list"
	case map[string]any:
		return "dict"
	}
	return fmt.Sprintf("%T", v)
}

// object, list and text return a value as what it should be, empty if it isn't.
func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func list(v any) []any            { l, _ := v.([]any); return l }
func text(v any) string           { s, _ := v.(string); return s }

func anys(in []string) []any {
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}
