package scenarios

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("scenario.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// yamlValue is a document as the schema's validator wants it.
func yamlValue(t *testing.T, data []byte) []any {
	t.Helper()
	r := decode.NewReader(nil)
	var out []any
	for _, doc := range r.Documents("f.yaml", data) {
		out = append(out, doc.Plain())
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSchemaAcceptsWhatLoads(t *testing.T) {
	s := compileSchema(t)
	texts := map[string][]byte{"starter": []byte(starter)}
	for _, dir := range []string{"testdata", "library"} {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".yaml") || e.Name() == "pods.yaml" {
				return err
			}
			b, err := os.ReadFile(path)
			if bytes.Contains(b, []byte("kind: Scenario")) {
				texts[path] = b
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, b := range texts {
		for _, v := range yamlValue(t, b) {
			if err := s.Validate(v); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	s := compileSchema(t)
	for name, doc := range map[string]string{
		"unknown field":            head + oneNode + "  zebra: 1\n",
		"unknown field of kubelet": head + "  nodes: [{name: a, kubelet: {evictionHrd: {}}}]\n",
		"unknown field of a pod":   podDoc("          containers: [{name: a, imgae: b}]\n"),
		"bad time":                 head + oneNode + "  duration: soon\n",
		"two actions":              head + oneNode + "  timeline: [{at: 1s, reboot: {}, stopKubelet: {}}]\n",
		"missing name":             head + "  nodes: [{count: 3}]\n",
		"CRI method":               head + "  nodes: [{name: a, runtime: {latency: {RunSandbox: 1s}}}]\n",
		"kind":                     head + oneNode + "  timeline: [{at: 1s, apply: {manifest: {apiVersion: v1, kind: Deploymnt}}}]\n",
	} {
		if strings.HasPrefix(doc, " ") {
			doc = head + doc
		}
		if err := s.Validate(yamlValue(t, []byte(doc))[0]); err == nil {
			t.Errorf("%s: the schema accepts it", name)
		}
	}
}
