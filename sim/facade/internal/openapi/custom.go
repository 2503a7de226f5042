package openapi

import (
	"encoding/json"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/kube-openapi/pkg/spec3"
)

// customV3 is the document of a version of custom resources.
func customV3(v *Version) ([]byte, error) {
	var all []*spec3.OpenAPI
	for _, def := range v.Custom {
		doc, err := builder.BuildOpenAPIV3(def, v.Version, builder.Options{IncludeSelectableFields: true})
		if err != nil {
			return nil, fmt.Errorf("openapi of %s: %w", def.Name, err)
		}
		all = append(all, doc)
	}
	doc, err := builder.MergeSpecsV3(all...)
	if err != nil {
		return nil, fmt.Errorf("openapi of %s: %w", v.GroupVersion, err)
	}
	return json.Marshal(doc)
}

// customV2 adds the paths and schemas of a version of custom resources.
func customV2(v *Version, paths, schemas map[string]any) error {
	for _, def := range v.Custom {
		swagger, err := builder.BuildOpenAPIV2(def, v.Version, builder.Options{V2: true, IncludeSelectableFields: true})
		if err != nil {
			return fmt.Errorf("openapi of %s: %w", def.Name, err)
		}
		data, err := json.Marshal(swagger)
		if err != nil {
			return fmt.Errorf("openapi of %s: %w", def.Name, err)
		}
		var doc struct{ Paths, Definitions map[string]json.RawMessage }
		if err := json.Unmarshal(data, &doc); err != nil {
			return fmt.Errorf("openapi of %s: %w", def.Name, err)
		}
		for path, item := range doc.Paths {
			paths[path] = item
		}
		for name, s := range doc.Definitions {
			if schemas[name] == nil {
				schemas[name] = s
			}
		}
	}
	return nil
}
