package scale

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/scenarios"
)

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestWorkloadMistakes(t *testing.T) {
	head := "apiVersion: drydock.dev/v1alpha1\nkind: Workload\nspec:\n"
	for _, tt := range []struct{ text, want string }{
		{"a: 1\n", `w.yaml:1:1: want a document that begins with apiVersion: drydock.dev/v1alpha1 and kind: Workload`},
		{"", "w.yaml: want one document of kind Workload, there are 0"},
		{head + "  classes: []\n", "w.yaml:4:3: spec.classes: there must be one at least"},
		{head + "  classes:\n  - {name: a}\n", "w.yaml:5:5: spec.classes[0]: has no pods: it needs one of share, count, arrivalRate"},
		{head + "  classes:\n  - {name: a, shar: 1}\n", `spec.classes[0].shar: unknown field "shar" (did you mean "share"?)`},
		{head + "  classes:\n  - {name: A_, count: 1}\n", "w.yaml:5:12: spec.classes[0].name: "},
		{head + "  classes:\n  - {name: a, count: 1, requests: {cpu: {uniform: {min: 2, max: 1}}}}\n", "w.yaml:5:65: spec.classes[0].requests.cpu.uniform.max: is below min"},
		{head + "  classes:\n  - {name: a, count: 1, requests: {cpu: {}}}\n", "spec.classes[0].requests.cpu: want a value, or one of"},
		{head + "  classes:\n  - {name: a, count: 1, requests: {cpu: {logNormal: {median: 1, sigma: 0}}}}\n", "sigma: must be more than 0"},
		{head + "  classes:\n  - {name: a, count: 1, usage: {cpu: 0.5}}\n", "spec.classes[0].usage.cpu: is a part of requests.cpu, which is not said"},
		{head + "  classes:\n  - {name: a, count: 1, failing: 0.5}\n", "end and failing need a lifetime"},
		{head + "  classes:\n  - {name: a, count: 1, end: explode, lifetime: 1m}\n", `"explode" is none of delete, exit`},
		{head + "  classes:\n  - {name: a, count: 1, lifetime: 90}\n", "which unit?"},
		{head + "  classes:\n  - {name: a, count: 1, pod: {spec: {containers: [{name: X, image: a}]}}}\n", "w.yaml:5:58: spec.classes[0].pod.spec.containers[0].name: Invalid value"},
		{head + "  classes:\n  - {name: a, count: 1, replicas: 3}\n", "replicas: needs a controller"},
		{head + "  classes:\n  - {name: a, count: 1, controller: Job}\n", "a Job's containers must exit"},
		{head + "  classes:\n  - {name: a, count: 1, controller: Deployment, lifetime: 1m, end: exit}\n", "containers of a Deployment are not to exit"},
		{head + "  classes:\n  - {name: a, share: 1, controller: DaemonSet}\n", "it goes with count only"},
		{head + "  classes:\n  - {name: a, count: 1}\n  - {name: a, count: 1}\n", `there are two classes "a"`},
	} {
		_, err := ParseWorkload("w.yaml", []byte(tt.text))
		var list scenarios.LoadErrors
		if !errors.As(err, &list) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", strings.TrimPrefix(tt.text, head), err, tt.want)
		}
	}
}

func TestTraceMistakes(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "t.csv: there is no line of column names"},
		{"arrival\n", "t.csv: there are no pods in this trace"},
		{"name,cpu\na,1\n", "t.csv:1:1: arrival: the column is missing"},
		{"arrival,cpus\n0,1\n", "t.csv:1:9: cpus: there is no such column"},
		{"arrival,cpu,cpu\n0,1,1\n", "t.csv:1:13: cpu: the column is there twice"},
		{"arrival,cpu\n0,1\nsoon,1\n", `t.csv:3:1: arrival: "soon" is no time`},
		{"arrival,cpu\n-1,1\n", "t.csv:2:1: arrival: -1 is not within"},
		{"arrival,cpu\n,1\n", "arrival: must be set"},
		{"arrival,memory\n0,4 GB\n", `t.csv:2:3: memory: "4 GB" is no quantity`},
		{"arrival,exit_code\n0,3\n", "exit_code: needs run_for"},
		{"arrival,exit_code,run_for\n0,300,1\n", "no whole number within 0 and 255"},
		{"arrival,name\n0,a\n1,a\n", `t.csv:3:3: name: "a" is on line 2 too`},
		{"arrival,name\n0,a b\n", `name: "a b"`},
		{"arrival,name\n0\n", "t.csv:2:1: wrong number of fields"},
		{"arrival,cpu,cpu_limit\n0,2,1\n", "t.csv:2:5: cpu_limit: is less than what is requested"},
		{"arrival,node_selector\n0,ssd\n", "is no label such as disk=ssd"},
		{"name,cpu_milli,memory_mib,creation_time,deletion_time\na,1,1,10,5\n", "deletion_time: is before creation_time"},
		{"name,cpu_milli,memory_mib\na,1,1\n", "creation_time: the column is missing"},
		{"arrival,image\n0,a\n1,Bad Image!\n", `t.csv:3:3: image: "Bad Image!": `},
		{"arrival,example.com/gpu\n0,1.5\n", `t.csv:2:3: example.com/gpu: "1.5" is no whole number`},
		{"arrival,cpu_usage\n0,1e30\n", "t.csv:2:3: cpu_usage: 1e30 is more than 1Pi"},
	} {
		_, err := ReadTrace("t.csv", strings.NewReader(tt.text))
		var list scenarios.LoadErrors
		if !errors.As(err, &list) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.text, err, tt.want)
		}
	}
}

// Spreadsheets begin a file with a byte order mark, quote names, and end lines with
// CR and LF.
func TestTraceForms(t *testing.T) {
	for _, text := range []string{
		"arrival,cpu\n1,2\n", "\ufeffarrival,cpu\n1,2\n", "\ufeff\"arrival\",\"cpu\"\r\n\"1\",\"2\"\r\n", "\ufeff# from a spreadsheet\narrival,cpu\n1,2", " cpu , arrival \n2,1s\n",
	} {
		tr, err := ReadTrace("t.csv", strings.NewReader(text))
		if err != nil || tr.Pods() != 1 || tr.rows[0].arrival != time.Second || tr.rows[0].shape.requests.Cpu().Value() != 2 {
			t.Errorf("%q: %v", text, err)
		}
	}
	nodes := "\ufeff\"sn\",\"cpu_milli\",\"memory_mib\"\r\nx,1000,2000\r\n"
	if shapes, n, err := ReadTraceNodes("n.csv", strings.NewReader(nodes)); err != nil || n != 1 || shapes[0].Capacity.Cpu().Value() != 1 {
		t.Errorf("%v %v", shapes, err)
	}
	for text, want := range map[string]string{"sn,cpu_milli,memory_mib\n": "n.csv: there are no nodes in this file", "sn,cpu_milli\n": "memory_mib: the column is missing", "sn,cpu_milli,memory_mib\nx,-1,1\n": "n.csv:2:3: cpu_milli: "} {
		if _, _, err := ReadTraceNodes("n.csv", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A cell of 0 is not an empty one: times end at once, a request stays below its
// limit.
func TestTraceZeros(t *testing.T) {
	tr, err := ReadTrace("t.csv", strings.NewReader("arrival,lifetime,run_for,exit_code,cpu,cpu_limit,memory\n0,0,,,0,1,\n1,,0,1,,,0\n2,,,,,1,\n"))
	if err != nil {
		t.Fatal(err)
	}
	deleted, exits, empty := &tr.rows[0], &tr.rows[1], &tr.rows[2]
	if deleted.lifetime != time.Millisecond || deleted.runFor != 0 || exits.runFor != time.Millisecond || exits.exit != 1 || exits.lifetime != 0 || empty.lifetime != 0 || empty.runFor != 0 {
		t.Errorf("%+v %+v %+v", deleted, exits, empty)
	}
	if q, said := deleted.shape.requests[v1.ResourceCPU]; !said || !q.IsZero() {
		t.Errorf("%+v", deleted.shape)
	}
	if _, said := empty.shape.requests[v1.ResourceCPU]; said || empty.shape == deleted.shape {
		t.Errorf("%+v", empty.shape)
	}
	tr.Cut(0, 1e-300)
	if at := tr.rows[2].arrival; at != maxSpan {
		t.Errorf("the last arrives at %v", at)
	}
}

func TestTraceOfAlibaba(t *testing.T) {
	tr, err := ReadTrace("pods.csv", strings.NewReader(string(readFile(t, "testdata/openb_pods.csv"))))
	if err != nil || tr.Pods() != 4 {
		t.Fatal(err)
	}
	done, runs, typed, failed := &tr.rows[0], &tr.rows[1], &tr.rows[2], &tr.rows[3]
	if done.name != "openb-pod-0017" || done.arrival != 9437497*time.Second || done.runFor != (10769854-9437497)*time.Second || done.lifetime != 0 || done.exit != 0 {
		t.Errorf("%+v", done)
	}
	gpu, cpu := done.shape.limits[ResourceGPUMilli], done.shape.requests[v1.ResourceCPU]
	if gpu.Value() != 8000 || cpu.MilliValue() != 88000 || done.shape.labels[LabelQOS] != "Burstable" || done.shape.affinity != nil {
		t.Errorf("%+v", done.shape)
	}
	gpu = runs.shape.requests[ResourceGPUMilli]
	if gpu.Value() != 220 || runs.lifetime != (9973826-9679175)*time.Second || runs.runFor != 0 {
		t.Errorf("%+v %+v", runs, runs.shape)
	}
	terms := typed.shape.affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if e := terms[0].MatchExpressions[0]; e.Key != LabelGPUModel || !slices.Equal(e.Values, []string{"V100M16", "V100M32"}) {
		t.Errorf("%+v", e)
	}
	if failed.exit != 1 || failed.runFor != (9968575-9967063)*time.Second || failed.shape == typed.shape {
		t.Errorf("%+v", failed)
	}
	shapes, n, err := ReadTraceNodes("nodes.csv", strings.NewReader(string(readFile(t, "testdata/openb_nodes.csv"))))
	if err != nil || n != 3 || len(shapes) != 3 {
		t.Fatal(shapes, n, err)
	}
	g := shapes[1].Capacity[ResourceGPUMilli]
	if g.Value() != 8000 || shapes[1].Labels[LabelGPUModel] != "G3" || shapes[0].Labels != nil {
		t.Errorf("%+v", shapes)
	}
}

func TestCutTrace(t *testing.T) {
	tr, err := ReadTrace("t.csv", strings.NewReader("name,arrival,lifetime,run_for\nover,0,100,\nlives,0,200,\nruns,50,,400\nfor-ever,10,,\nlater,300,60,\n"))
	if err != nil {
		t.Fatal(err)
	}
	tr.Cut(100*time.Second, 10)
	got := map[string]row{}
	for _, r := range tr.rows {
		got[r.name] = r
	}
	if _, there := got["over"]; there || len(got) != 4 {
		t.Errorf("%v", got)
	}
	sec := time.Second
	for name, want := range map[string][3]time.Duration{"lives": {0, 10 * sec, 0}, "runs": {0, 0, 35 * sec}, "for-ever": {}, "later": {20 * sec, 6 * sec, 0}} {
		if r := got[name]; [3]time.Duration{r.arrival, r.lifetime, r.runFor} != want {
			t.Errorf("%s: %+v, want %v", name, r, want)
		}
	}
	if tr.End() != 35*sec {
		t.Errorf("ends at %v", tr.End())
	}
}

func TestSnapshotForms(t *testing.T) {
	node, pod := `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"a","image":"a"}],"newField":1}}`
	for name, text := range map[string]string{
		"a JSON list":    `{"apiVersion":"v1","kind":"List","items":[` + node + "," + pod + `]}`,
		"JSON documents": node + "\n" + pod,
		"typed lists":    `{"kind":"NodeList","items":[{"metadata":{"name":"n"}}]} {"kind":"PodList","items":[` + pod + `]}`,
		"YAML documents": "---\n" + node + "\n---\n\n---\n" + pod + "\n",
	} {
		s, err := ReadSnapshot("c", strings.NewReader(text))
		if err != nil || len(s.Nodes) != 1 || len(s.Pods) != 1 || s.Pods[0].Spec.NodeName != "n" {
			t.Errorf("%s: %+v %v", name, s, err)
		}
	}
	for text, want := range map[string]string{
		"":     "c: there are no nodes in this file",
		"a: [": "c:1:1: bad YAML",
		"---\na: 1\n---\nkind: Node\nmetadata: {name: n}\nb: *x\n": "c:2:1: is no Kubernetes object: it has no kind",
		"kind: Service\n---\n# of nodes\nkind: Node\n  x: [\n":     "c:5:1: bad YAML: mapping values are not allowed in this context",
		"{":                             "c:1:1: bad JSON: the file ends within a document",
		"{\"kind\": \"Node\",\n  kind}": "c:2:3: bad JSON: invalid character 'k'",
		"a: 1":                          "c:1:1: is no Kubernetes object: it has no kind",
		"kind: Node":                    "c:1:1: node: metadata.name: must be set",
		"kind: List\nitems: [{kind: Node, metadata: {name: 3}}]":                                                        "c:2:39: items[0]: node: metadata.name: is a number; want string",
		"--- # nodes\nkind: Node\nmetadata: {name: n1}\n--- {kind: Pod,\n metadata: {name: p}, spec: {priority: high}}": "c:5:40: pod p: spec.priority: is a string; want int32",
		"{\"kind\": \"Node\",\n \"metadata\": {\"name\": \"n\"}}\n\n{\"kind\": \"PodList\", \"items\": [\n {\"metadata\":{\"name\":\"a\"}},\n {\"metadata\":{\"name\":\"p\"},\n  \"spec\":{\"containers\":[{\"name\":1}]}}]}": "c:7:24: items[1]: pod p: spec.containers.name: is a number; want string",
	} {
		if _, err := ReadSnapshot("c", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// The example of docs/scale.md is a workload.
func TestDocumentedWorkload(t *testing.T) {
	doc := string(readFile(t, "../docs/scale.md"))
	_, rest, _ := strings.Cut(doc, "```yaml\n")
	text, _, ok := strings.Cut(rest, "```")
	if w, err := ParseWorkload("docs/scale.md", []byte(text)); !ok || err != nil || len(w.Spec.Classes) != 3 {
		t.Errorf("%v", err)
	}
	for _, column := range append(slices.Clone(ownColumns), openbColumns...) {
		if !strings.Contains(doc, "`"+column+"`") {
			t.Errorf("docs/scale.md says nothing of the column %s", column)
		}
	}
}
