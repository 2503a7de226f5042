package scenarios

import (
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// TestManifestList takes a List as what is in it, in place, among others and in
// another List.
func TestManifestList(t *testing.T) {
	const text = head + oneNode + `  timeline:
  - at: 1s
    apply:
      manifest:
      - {apiVersion: v1, kind: Secret, metadata: {name: before}}
      - apiVersion: v1
        kind: List
        metadata: {resourceVersion: ""}
        items:
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}
        - {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}]}
        - {apiVersion: v1, kind: Node, metadata: {name: c}}
      - {apiVersion: v1, kind: List, items: []}
`
	list, err := Parse("f.yaml", []byte(text), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range list[0].Spec.Timeline[0].Does.(*action.Apply).Objects {
		m := o.Object.(metav1.Object)
		got = append(got, fmt.Sprintf("%T %s/%s %v", m, m.GetNamespace(), m.GetName(), o.Pos))
	}
	want := "*v1.Secret default/before f.yaml:10:9, *v1.ConfigMap shop/a f.yaml:15:11, *v1.ConfigMap default/b f.yaml:16:48, *v1.Node /c f.yaml:17:11"
	if got := strings.Join(got, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestDocsNameKinds holds the list of kinds in the documentation to the table.
func TestDocsNameKinds(t *testing.T) {
	data, err := os.ReadFile("../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(data), "- **Manifests** ")
	_, rest, ok2 := strings.Cut(rest, "Kinds:")
	named, _, ok3 := strings.Cut(rest, ".")
	if !ok || !ok2 || !ok3 {
		t.Fatal("the document has no list of kinds")
	}
	kinds := value.ManifestKinds()
	for _, name := range strings.FieldsFunc(named, func(r rune) bool { return strings.ContainsRune(", \n", r) }) {
		if _, ok := kinds[name]; !ok {
			t.Errorf("the document has %q, which is none", name)
		}
		delete(kinds, name)
	}
	for name := range kinds {
		t.Errorf("the document lacks %s", name)
	}
}
