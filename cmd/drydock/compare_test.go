package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// compared has a container that is restarted when it exits, so that the back-off
// decides how often it is.
const compared = head + `  duration: 5m
  programs:
  - {match: {pod: crash}, runFor: 1s, exit: 1}
  timeline:
  - {at: 5s, apply: {manifest: {apiVersion: v1, kind: Pod, metadata: {name: crash}, spec: {containers: [{name: main, image: "app:1"}]}}}}
  expect:
  - {at: end, that: 'restarts("crash") < 8'}
`

const shortBackOff = "spec.nodes[0].kubelet.crashLoopBackOff.maxContainerRestartPeriod=10s"

func TestCompare(t *testing.T) {
	file := write(t, "a.yaml", compared)
	code, out, errs := drydock(t, "compare", file, file, "--set", "spec.duration=1m", "-o", "json", "--seed", "9")
	var doc struct {
		Passed  bool
		Seeds   []uint64
		Figures []struct {
			Name, Unit string
			A, B       struct{ Mean float64 }
		}
		A, B struct {
			Runs []struct{ Summary struct{ Hash string } }
		}
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != exitOK || errs != "" {
		t.Fatalf("code %d, %v, %s\n%s", code, err, errs, out)
	}
	if !doc.Passed || len(doc.Seeds) != 1 || doc.Seeds[0] != 9 || doc.A.Runs[0].Summary.Hash != doc.B.Runs[0].Summary.Hash {
		t.Errorf("%+v", doc)
	}
	for _, f := range doc.Figures {
		if f.A != f.B || f.Name == "container restarts" && (f.A.Mean < 2 || f.Unit != "count") {
			t.Errorf("%+v", f)
		}
	}
}

// TestInterruptedCompare has what there is shown when a comparison is stopped.
func TestInterruptedCompare(t *testing.T) {
	file := write(t, "a.yaml", compared)
	for _, args := range [][]string{
		{"--set", "spec.duration=8000h"},
		{"--set", "spec.duration=8000h", "-o", "json"},
		{"--seeds", "1-100000"},
		{"--seeds", "1-100000", "-o", "json"},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		var out, errs bytes.Buffer
		code := execute(ctx, append([]string{"compare", file, "--b-set", shortBackOff}, args...), &out, &errs)
		cancel()
		if code != exitFailed || !strings.Contains(errs.String(), "compare: interrupted") {
			t.Errorf("%v: code %d, %s", args, code, errs.String())
		}
		if args[len(args)-1] != "json" {
			if s := out.String(); !strings.Contains(s, "warning: cut short: ") || !strings.Contains(s, "\ncontainer restarts") {
				t.Errorf("%v:\n%s", args, s)
			}
			continue
		}
		var doc struct {
			Passed, Interrupted bool
			Warnings            []string
			Seeds               []uint64
		}
		if err := json.Unmarshal(out.Bytes(), &doc); err != nil || doc.Passed || !doc.Interrupted || len(doc.Warnings) != 1 || len(doc.Seeds) == 0 {
			t.Errorf("%v: %v %+v", args, err, doc)
		}
	}
}

func TestRunMetricsAndCensus(t *testing.T) {
	file := write(t, "a.yaml", compared)
	code, out, _ := drydock(t, "run", file, "--metrics", "--census")
	for _, want := range []string{"container restarts       5\n", "census: the API has 1 pod (0 left it within the last 3m)", "census: nothing is left of pods that are gone"} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("code %d, no %q in\n%s", code, want, out)
		}
	}
	code, out, _ = drydock(t, "run", file, "--metrics", "--census", "-o", "json")
	for _, want := range []string{`"metrics": {`, `"restarts": [`, `"count": 5`, `"census": {`, `"leaks": []`} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("code %d, no %q in\n%s", code, want, out)
		}
	}
}
