package scenarios

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/scenarios/action"
)

// applied are the objects of the first action of a scenario, as "Kind name", and its notices.
func applied(t *testing.T, file, text string, opts LoadOptions) (objects, notices []string) {
	t.Helper()
	list, err := Parse(file, []byte(text), opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list[0].Spec.Timeline[0].Does.(*action.Apply).Objects {
		m := o.Object.(metav1.Object)
		if m.GetUID() != "" || m.GetResourceVersion() != "" {
			t.Errorf("%s has fields of a server", m.GetName())
		}
		objects = append(objects, o.GetObjectKind().GroupVersionKind().Kind+" "+m.GetName())
	}
	return objects, list[0].Notices
}

// TestManifestsOfServers: what a server wrote is left out, with a word of each file.
func TestManifestsOfServers(t *testing.T) {
	const text = head + oneNode + `  timeline:
  - at: 1s
    apply:
      manifest:
      - {apiVersion: v1, kind: Secret, metadata: {name: read, uid: a, resourceVersion: "3", creationTimestamp: "2026-01-01T00:00:00Z"}}
      - {apiVersion: v1, kind: Pod, metadata: {name: pod, uid: b}, spec: {containers: [{name: a, image: b}]}, status: {phase: Running}}
      - {apiVersion: v1, kind: Service, metadata: {name: made, creationTimestamp: null}, spec: {ports: [{port: 80}]}, status: {loadBalancer: {}}}
      - {apiVersion: v1, kind: ConfigMapList, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: of-a-list}}]}
      - {apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: old}, spec: {maxReplicas: 3, targetCPUUtilizationPercentage: 50, scaleTargetRef: {kind: Deployment, name: web, apiVersion: apps/v1}}}
`
	objects, notices := applied(t, "f.yaml", text, LoadOptions{})
	if want := []string{"Secret read", "Pod pod", "Service made", "ConfigMap of-a-list", "HorizontalPodAutoscaler old"}; !slices.Equal(objects, want) {
		t.Errorf("objects %q, want %q", objects, want)
	}
	if want := []string{"f.yaml: metadata.creationTimestamp, metadata.resourceVersion, metadata.uid, status of 2 objects: the API writes these itself; they are left out"}; !slices.Equal(notices, want) {
		t.Errorf("notices %q, want %q", notices, want)
	}
}

// TestInertKinds: one line names all kinds that nothing acts on; a custom resource
// without a definition is taken.
func TestInertKinds(t *testing.T) {
	const text = head + oneNode + `  timeline:
  - at: 1s
    apply:
      manifest:
      - {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}, rules: []}
      - {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: s}, rules: []}
      - {apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 3}}
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
`
	_, notices := applied(t, "f.yaml", text, LoadOptions{})
	want := []string{"stored, but nothing in a simulation acts on them: Role, Widget (no definition of it in example.com is applied: taken as it is)"}
	if !slices.Equal(notices, want) {
		t.Errorf("notices %q, want %q", notices, want)
	}
}

// TestHelmHooks: hooks of an installation stand where helm install has them, others are
// left out.
func TestHelmHooks(t *testing.T) {
	hook := func(name, hook, weight string) string {
		return "      - {apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", annotations: {helm.sh/hook: '" + hook + "', helm.sh/hook-weight: '" + weight + "'}}}\n"
	}
	text := head + oneNode + "  timeline:\n  - at: 1s\n    apply:\n      manifest:\n      - {apiVersion: v1, kind: ConfigMap, metadata: {name: plain}}\n" +
		hook("after", "post-install,post-upgrade", "1") + hook("tested", "test", "0") + hook("second", "pre-install", "5") +
		hook("first", "pre-upgrade, pre-install", "-5") + hook("removed", "pre-delete", "")
	objects, notices := applied(t, "f.yaml", text, LoadOptions{})
	if want := []string{"ConfigMap first", "ConfigMap second", "ConfigMap plain", "ConfigMap after"}; !slices.Equal(objects, want) {
		t.Errorf("objects %q, want %q", objects, want)
	}
	want := "hooks of Helm that an installation doesn't run are not applied: ConfigMap tested (test), ConfigMap removed (pre-delete)"
	if !slices.Equal(notices, []string{want}) {
		t.Errorf("notices %q, want %q", notices, want)
	}
}

// TestApplyDirectory: the manifests of a directory, by name, and of none below it.
func TestApplyDirectory(t *testing.T) {
	dir := t.TempDir()
	for name, kind := range map[string]string{"b.yaml": "b", "a.json": "a", "c.txt": "c", "sub/d.yaml": "d", "e.yml": "e"} {
		file := filepath.Join(dir, "manifests", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "`+kind+`"}}`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text := head + oneNode + "  timeline:\n  - {at: 1s, apply: {file: manifests}}\n"
	objects, _ := applied(t, filepath.Join(dir, "f.yaml"), text, LoadOptions{})
	if got := strings.Join(objects, ", "); got != "ConfigMap a, ConfigMap b, ConfigMap e" {
		t.Errorf("applied %s", got)
	}
	_, err := Parse(filepath.Join(dir, "f.yaml"), []byte(strings.Replace(text, "manifests", "manifests/sub/none", 1)), LoadOptions{})
	if err == nil || !strings.Contains(err.Error(), "cannot read the file") {
		t.Errorf("a directory that is not there: %v", err)
	}
}
