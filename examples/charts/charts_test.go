package charts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/release"

	"github.com/drydock-sim/drydock/scenarios"
)

// scenario applies a file and wants all of it to come up: whatever there is of workloads
// is ready, and jobs are complete.
const scenario = `apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: chart}
spec:
  duration: 10m
  nodes: [{name: worker, count: 3, capacity: {cpu: 8, memory: 16Gi}}]
  timeline:
  - {at: 1s, apply: {file: %s}}
  expect:
  - {by: 5m, that: 'pods().size() > 0 && deployments().all(d, d.status.readyReplicas == d.spec.replicas)'}
  - {by: 5m, that: 'statefulSets().all(s, s.status.readyReplicas == s.spec.replicas)'}
  - {by: 5m, that: 'daemonSets().all(d, d.status.desiredNumberScheduled > 0 && d.status.numberReady == d.status.desiredNumberScheduled)'}
  - {by: 5m, that: 'jobs().all(j, condition(j, "Complete").status == "True")'}
  - {by: 5m, that: 'pods().all(p, p.status.phase == "Succeeded" || ready(p))'}
  - {at: end, that: 'pods().all(p, restarts(p) == 0)'}
  - {at: end, that: 'persistentVolumeClaims().all(c, c.status.phase == "Bound")'}
`

// render is helm template --include-crds. Charts beside it are its subcharts.
func render(t *testing.T, name string) string {
	t.Helper()
	ch, err := loader.Load(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range ch.Metadata.Dependencies {
		sub, err := loader.Load(filepath.Join("testdata", d.Name))
		if err != nil {
			t.Fatal(err)
		}
		ch.AddDependency(sub)
	}
	// A chart whose templates name the release's namespace brings all into one that
	// nothing makes; others are applied to default.
	namespace := "default"
	if name == "web" {
		namespace = "shop"
	}
	return manifest(t, ch, namespace)
}

func manifest(t *testing.T, ch *chart.Chart, namespace string) string {
	t.Helper()
	config := action.NewConfiguration()
	config.Capabilities = common.DefaultCapabilities
	install := action.NewInstall(config)
	install.DryRunStrategy, install.IncludeCRDs = action.DryRunClient, true
	install.ReleaseName, install.Namespace = "shop", namespace
	rel, err := install.RunWithContext(context.Background(), ch, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := release.NewAccessor(rel)
	if err != nil {
		t.Fatal(err)
	}
	out := r.Manifest()
	for _, h := range r.Hooks() {
		hook, err := release.NewHookAccessor(h)
		if err != nil {
			t.Fatal(err)
		}
		out += "---\n" + hook.Manifest() + "\n"
	}
	return out
}

// run runs a manifest and wants everything to come up.
func run(t *testing.T, file string) *scenarios.Result {
	t.Helper()
	text := fmt.Sprintf(scenario, filepath.Base(file))
	list, err := scenarios.Parse(filepath.Join(filepath.Dir(file), "scenario.yaml"), []byte(text), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := scenarios.Run(context.Background(), list[0], scenarios.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !res.Passed || testing.Verbose() {
		var out strings.Builder
		res.WriteText(&out, false)
		t.Log(out.String())
	}
	if !res.Passed {
		t.Error("it did not come up")
	}
	return res
}

func TestCharts(t *testing.T) {
	for _, name := range []string{"web", "database", "operator", "queue", "umbrella"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), name+".yaml")
			if err := os.WriteFile(file, []byte(render(t, name)), 0o644); err != nil {
				t.Fatal(err)
			}
			run(t, file)
		})
	}
}

// TestApps runs the applications that people try first.
func TestApps(t *testing.T) {
	files, err := filepath.Glob("testdata/apps/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) { run(t, file) })
	}
}
