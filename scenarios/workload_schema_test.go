package scenarios_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/drydock-sim/drydock/scale"
	"github.com/drydock-sim/drydock/scenarios"
)

// TestWorkloadSchema compares the schema of workloads with what the types say, and holds it
// against workloads that load and one that doesn't.
func TestWorkloadSchema(t *testing.T) {
	const file = "../scale/workload.schema.json"
	want := scenarios.SchemaOf(t, reflect.TypeFor[scale.Workload](), "../scale", "Drydock workload", "workload")
	if have, _ := os.ReadFile(file); !bytes.Equal(have, want) {
		if !scenarios.Update() {
			t.Fatalf("%s is not what the types say: run go test ./scenarios -run 'TestGenerated|TestWorkloadSchema' -update", file)
		}
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("workload.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("workload.json")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)[1]
	mixed, err := os.ReadFile("../scale/testdata/mixed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(data []byte) error {
		text, err := yaml.YAMLToJSON(data)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		return schema.Validate(v)
	}
	for _, data := range [][]byte{example, mixed} {
		if _, err := scale.ParseWorkload("w.yaml", data); err != nil {
			t.Error(err)
		}
		if err := valid(data); err != nil {
			t.Error(err)
		}
	}
	for _, wrong := range [][2]string{{"controller: Deployment", "controller: Deploy"}, {"arrivalRate:", "arivalRate:"}, {"logNormal: {median: 100m, sigma: 0.8}", "logNormal: {median: 100m}"}} {
		if valid(bytes.Replace(example, []byte(wrong[0]), []byte(wrong[1]), 1)) == nil {
			t.Errorf("the schema accepts %s", wrong[1])
		}
	}
}
