// Package openapi makes the documents by which clients know types: what fields they have,
// how lists of them are merged, and by which paths they are reached. Those of built-in
// kinds are of definitions that kube-openapi's generator made of the types' sources; those
// of custom resources are made by k8s.io/apiextensions-apiserver of their definitions.
//
//   - openapi.go: the definitions, and documents made of them
//   - paths.go: what is said of a resource's paths
//   - custom.go: custom resources
//   - gen: makes definitions.json.gz
package openapi

import (
	"bytes"
	"compress/gzip"
	_ "embed" // for definitions.json.gz
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:generate go run ./gen

// compressed are the definitions of all types, as version 3 of OpenAPI has them.
//
//go:embed definitions.json.gz
var compressed []byte

// Definitions are schemas of types by name ("io.k8s.api.core.v1.Pod"), and which of them
// is which kind.
type Definitions struct {
	schemas map[string]json.RawMessage
	kinds   map[schema.GroupVersionKind]string
}

// Load reads the definitions, which takes some 50 ms.
func Load() (*Definitions, error) {
	z, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("openapi definitions: %w", err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("openapi definitions: %w", err)
	}
	d := &Definitions{kinds: map[schema.GroupVersionKind]string{}}
	if err := json.Unmarshal(data, &d.schemas); err != nil {
		return nil, fmt.Errorf("openapi definitions: %w", err)
	}
	for name, raw := range d.schemas {
		var of struct {
			Kinds []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
		}
		if err := json.Unmarshal(raw, &of); err != nil {
			return nil, fmt.Errorf("openapi definition %s: %w", name, err)
		}
		for _, gvk := range of.Kinds {
			d.kinds[gvk] = name
		}
	}
	return d, nil
}

// Version is a version of a group, with what is served in it.
type Version struct {
	schema.GroupVersion
	// Resources are those of built-in kinds, as discovery names them.
	Resources []metav1.APIResource
	// Custom define the other resources.
	Custom []*apiextensionsv1.CustomResourceDefinition
}

// Path is where the version's document is: "api/v1", "apis/apps/v1".
func (v *Version) Path() string {
	if v.Group == "" {
		return "api/" + v.Version
	}
	return "apis/" + v.String()
}

// info is the head of all documents.
func info(version string) map[string]string {
	return map[string]string{"title": "Kubernetes", "version": version}
}

// V3 is the document of a version, as OpenAPI 3 has it. of is the server's version.
func (d *Definitions) V3(v *Version, of string) ([]byte, error) {
	if len(v.Custom) > 0 {
		return customV3(v)
	}
	s := style{prefix: "#/components/schemas/", v3: true}
	paths := d.paths(v, s)
	schemas, err := d.used(paths, s.prefix)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"openapi": "3.0.0", "info": info(of), "paths": paths,
		"components": map[string]any{"schemas": schemas, "securitySchemes": map[string]any{"BearerToken": bearer}},
	})
}

// V2 is the document of all versions, as OpenAPI 2 has it.
func (d *Definitions) V2(versions []*Version, of string) ([]byte, error) {
	s := style{prefix: "#/definitions/"}
	paths, schemas := map[string]any{}, map[string]any{}
	for _, v := range versions {
		for path, item := range d.paths(v, s) {
			paths[path] = item
		}
	}
	used, err := d.used(paths, s.prefix)
	if err != nil {
		return nil, err
	}
	for name, raw := range used {
		var in map[string]any
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, fmt.Errorf("openapi definition %s: %w", name, err)
		}
		schemas[name] = toV2(in)
	}
	for _, v := range versions {
		if err := customV2(v, paths, schemas); err != nil {
			return nil, err
		}
	}
	return json.Marshal(map[string]any{
		"swagger": "2.0", "info": info(of), "paths": paths, "definitions": schemas,
		"securityDefinitions": map[string]any{"BearerToken": bearer}, "security": []any{map[string]any{"BearerToken": []string{}}},
	})
}

// bearer says how clients say who they are.
var bearer = map[string]string{"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer Token authentication"}

var (
	refsV3 = regexp.MustCompile(`"#/components/schemas/([^"]+)"`)
	refsV2 = regexp.MustCompile(`"#/definitions/([^"]+)"`)
)

// used are the schemas that paths refer to, and those that these refer to.
func (d *Definitions) used(paths map[string]any, prefix string) (map[string]json.RawMessage, error) {
	data, err := json.Marshal(paths)
	if err != nil {
		return nil, fmt.Errorf("openapi paths: %w", err)
	}
	out := map[string]json.RawMessage{}
	var add func(data []byte, refs *regexp.Regexp) error
	add = func(data []byte, refs *regexp.Regexp) error {
		for _, m := range refs.FindAllSubmatch(data, -1) {
			name := string(m[1])
			if out[name] != nil {
				continue
			}
			raw := d.schemas[name]
			if raw == nil {
				return fmt.Errorf("openapi: no definition of %s", name)
			}
			out[name] = raw
			if err := add(raw, refsV3); err != nil {
				return err
			}
		}
		return nil
	}
	refs := refsV2
	if strings.Contains(prefix, "components") {
		refs = refsV3
	}
	return out, add(data, refs)
}

// toV2 makes a schema of version 3 one of version 2: without defaults, whose references
// stand by themselves and whose choices of types are strings (the v2 schemas that types
// with several forms have in their sources).
func toV2(s map[string]any) map[string]any {
	delete(s, "default")
	if all, ok := s["allOf"].([]any); ok && len(all) == 1 {
		if ref, ok := all[0].(map[string]any)["$ref"]; ok {
			delete(s, "allOf")
			s["$ref"] = ref
		}
	}
	if ref, ok := s["$ref"].(string); ok {
		s["$ref"] = strings.Replace(ref, "#/components/schemas/", "#/definitions/", 1)
	}
	if s["oneOf"] != nil {
		delete(s, "oneOf")
		s["type"] = "string"
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if in, ok := s[key].(map[string]any); ok {
			s[key] = toV2(in)
		}
	}
	if props, ok := s["properties"].(map[string]any); ok {
		for name, in := range props {
			props[name] = toV2(in.(map[string]any))
		}
	}
	return s
}
