package scenarios_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/scenarios"
)

// TestCustomResources applies a definition and a resource of it together, and resources
// that the definition refuses, or that have none.
func TestCustomResources(t *testing.T) {
	const scenario = `apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: custom}
spec:
  duration: 10s
  nodes: [{name: worker}]
  timeline:
  - at: 1s
    apply:
      manifest:
`
	const definition = `      - apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: {name: shops.example.com}
        spec:
          group: example.com
          scope: Namespaced
          names: {plural: shops, singular: shop, kind: Shop}
          versions:
          - name: v1
            served: true
            storage: true
            schema:
              openAPIV3Schema:
                type: object
                properties:
                  spec: {type: object, properties: {pods: {type: integer, minimum: 1}, names: {type: array, items: {type: string}}}}
`
	shop := func(spec string) string {
		return "      - {apiVersion: example.com/v1, kind: Shop, metadata: {name: corner}, spec: " + spec + "}\n"
	}
	for name, tt := range map[string]struct{ objects, timeline, err string }{
		"together":      {definition + shop("{pods: 2, names: [a]}"), "shop default/corner                      api      created", ""},
		"refused":       {definition + shop("{pods: 0}"), "", `Shop.example.com "corner" is invalid: spec.pods: Invalid value: 0`},
		"no definition": {shop("{pods: 1}"), "shop default/corner                      api      created", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			res := run(t, parse(t, scenario+tt.objects), scenarios.RunOptions{Timeline: &out})
			if got := strings.Join(res.Errors, "\n"); tt.err == "" && got != "" || !strings.Contains(got, tt.err) {
				t.Errorf("errors: %q, want %q", got, tt.err)
			}
			if !strings.Contains(out.String(), tt.timeline) {
				t.Errorf("no %q in\n%s", tt.timeline, out.String())
			}
		})
	}
	// What is misspelt in a definition is found where it is written.
	_, err := scenarios.Parse("f.yaml", []byte(scenario+strings.Replace(definition, "minimum", "minimun", 1)), scenarios.LoadOptions{})
	if err == nil || !strings.Contains(err.Error(), `f.yaml:26:75:`) || !strings.Contains(err.Error(), `unknown field "minimun"`) {
		t.Errorf("a misspelt field: %v", err)
	}
}
