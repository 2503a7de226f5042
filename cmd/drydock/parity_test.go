package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const recordings = "../../scenarios/parity/testdata/recordings"

// copyCase writes a recording's copy, changed, and returns the file.
func copyCase(t *testing.T, name string, change func(map[string]any)) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(recordings, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	change(doc)
	if b, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), name+".json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestParityVerdicts(t *testing.T) {
	good := filepath.Join(recordings, "guaranteed-qos.json")
	code, out, _ := drydock(t, "parity", good)
	if code != exitOK || out != "PASS guaranteed-qos\nparity: 1 of 1 cases\n" {
		t.Errorf("exit %d, output %q", code, out)
	}
	// Another pod than the recorded one differs, and only where it does.
	wrong := copyCase(t, "guaranteed-qos", func(doc map[string]any) {
		for _, run := range doc["runs"].([]any) {
			for _, e := range run.(map[string]any)["events"].([]any) {
				if ev := e.(map[string]any); ev["reason"] == "Started" {
					ev["reason"] = "Begun"
				}
			}
		}
	})
	code, out, _ = drydock(t, "parity", wrong)
	if code != exitFailed || !strings.HasPrefix(out, "DIFF guaranteed-qos: events: event Begun") || !strings.HasSuffix(out, "parity: 0 of 1 cases\n") {
		t.Errorf("exit %d, output %q", code, out)
	}
	if code, out, _ = drydock(t, "parity", "--only", "status,timing", wrong); code != exitOK || !strings.HasPrefix(out, "PASS") {
		t.Errorf("--only status,timing: exit %d, output %q", code, out)
	}
	code, out, _ = drydock(t, "parity", "--json", wrong)
	var doc struct {
		Cases []struct {
			Name, Verdict string
			Differences   []struct{ Aspect, Text string }
		}
		Passed, Compared int
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != exitFailed {
		t.Fatalf("--json: exit %d, %v", code, err)
	}
	if len(doc.Cases) != 1 || doc.Cases[0].Verdict != "DIFF" || doc.Cases[0].Differences[0].Aspect != "events" || doc.Compared != 1 || doc.Passed != 0 {
		t.Errorf("--json: %+v", doc)
	}
}

func TestParityWithoutRuns(t *testing.T) {
	bare := copyCase(t, "guaranteed-qos", func(doc map[string]any) { doc["runs"] = []any{} })
	dir := filepath.Join(t.TempDir(), "seen", "here")
	code, out, errs := drydock(t, "parity", "--observed", dir, bare)
	if code != exitOK || out != "REPLAYED guaranteed-qos\nparity: 0 of 0 cases\n" {
		t.Fatalf("exit %d, output %q, %q", code, out, errs)
	}
	b, err := os.ReadFile(filepath.Join(dir, "guaranteed-qos.json"))
	if err != nil {
		t.Fatal(err)
	}
	var seen struct {
		Name string
		Runs []struct{ Status, Events, CRI []map[string]any }
	}
	if err := json.Unmarshal(b, &seen); err != nil {
		t.Fatal(err)
	}
	if seen.Name != "guaranteed-qos" || len(seen.Runs) != 1 || len(seen.Runs[0].Status) < 5 || len(seen.Runs[0].CRI) < 4 {
		t.Errorf("observed: %s", b)
	}
}

// TestParityOfAnAPI replays a recording of kube-apiserver, whole and spoilt.
func TestParityOfAnAPI(t *testing.T) {
	const file = "../../up/parity/testdata/recordings/auth.json"
	code, out, _ := drydock(t, "parity", file)
	if code != exitOK || out != "PASS auth\nparity: 1 of 1 cases\n" {
		t.Errorf("exit %d, output %q", code, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	spoilt := filepath.Join(t.TempDir(), "spoilt.json")
	if err := os.WriteFile(spoilt, []byte(strings.ReplaceAll(string(b), `"Unauthorized"`, `"Forbidden"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	observed := t.TempDir()
	code, out, _ = drydock(t, "parity", "--show", "auth", "--observed", observed, spoilt)
	if b, err := os.ReadFile(filepath.Join(observed, "auth.json")); err != nil || !strings.Contains(string(b), `"responses": [`) || strings.Contains(string(b), `"Sent"`) {
		t.Errorf("%v, observed %.300s", err, b)
	}
	if code != exitFailed || !strings.HasPrefix(out, "DIFF auth: answers: response 1 (GET /api/v1/namespaces/t-auth/configmaps) body.message wanted \"Forbidden\" got \"Unauthorized\"\n") {
		t.Errorf("exit %d, output %q", code, out)
	}
	if !strings.Contains(out, "\nGET /healthz\n< {") {
		t.Errorf("--show shows %q", out)
	}
	if code, out, _ = drydock(t, "parity", "--only", "status", spoilt); code != exitOK {
		t.Errorf("--only status: exit %d, output %q", code, out)
	}
	kubectl := filepath.Join(t.TempDir(), "kubectl.json")
	if err := os.WriteFile(kubectl, []byte(`{"name":"k","requests":[{"kubectl":["version"]}],"responses":[{"exit":0}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := drydock(t, "parity", kubectl)
	if code != exitBadInput || errs != kubectl+": recording k runs kubectl, which is not replayed\n" {
		t.Errorf("exit %d, %q", code, errs)
	}
}
