package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDirectory takes from a directory what is meant to be a scenario.
func TestDirectory(t *testing.T) {
	const rest = "metadata: {name: x}\nspec:\n" + oneNode
	for name, tt := range map[string]struct{ text, want string }{
		"scenario":          {head + oneNode, "x"},
		"quoted":            {"# of the shop\n\"apiVersion\": \"drydock.dev/v1alpha1\" # ours\n'kind': 'Scenario'\n" + rest, "x"},
		"after a manifest":  {"apiVersion: v1\nkind: Pod\n---\n" + head + oneNode, `FILE:2:7: kind: must be Scenario, not "Pod"`},
		"mistaken kind":     {"apiVersion: drydock.dev/v1alpha1\nkind: Scenaro\n" + rest, `FILE:2:7: kind: must be Scenario, not "Scenaro"`},
		"mistaken version":  {"apiVersion: drydock/v1\nkind: Scenario\n" + rest, `FILE:1:13: apiVersion: must be drydock.dev/v1alpha1, not "drydock/v1"`},
		"manifest":          {"apiVersion: v1\nkind: ConfigMap\n", "DIR: no scenario below this directory"},
		"workload":          {"apiVersion: drydock.dev/v1alpha1\nkind: Workload\n", "DIR: no scenario below this directory"},
		"workload, version": {"kind: Workload # of drydock scale\napiVersion: drydock.dev/v1alpha1\n", "DIR: no scenario below this directory"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "a.yaml")
		if err := os.WriteFile(file, []byte(tt.text), 0o666); err != nil {
			t.Fatal(err)
		}
		list, err := LoadPaths([]string{dir}, LoadOptions{})
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case len(list) == 1:
			got = list[0].Metadata.Name
		}
		want := strings.NewReplacer("FILE", file, "DIR", dir).Replace(tt.want)
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}
