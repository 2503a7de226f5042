package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/scenarios"
)

var update = flag.Bool("update", false, "write the golden files anew")

// drydock runs a command line.
func drydock(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// write writes a file below a temporary directory.
func write(t testing.TB, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

const (
	crash = "testdata/crash.yaml"
	flaky = "testdata/flaky.yaml"
	head  = "apiVersion: drydock.dev/v1alpha1\nkind: Scenario\nmetadata: {name: x}\nspec:\n  nodes: [{name: worker}]\n"
)

// TestBadScenarios has what a script can't write down; what users get wrong is in
// testdata/script/validate.txtar.
func TestBadScenarios(t *testing.T) {
	pod := "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, image: a}]}}"
	for _, tt := range []struct{ name, text, want string }{
		{"no UTF-8", "a: caf\xe9\n", "s.yaml: bad YAML: incomplete UTF-8"},
		{"binary", "\x00\x01\x02", "s.yaml: bad YAML"},
		{"a bomb", "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f]\n", "too large or too deep once its aliases are expanded"},
		{"an alias of itself", "a: &a {b: *a}\n", "too large or too deep"},
		{"deep", strings.Repeat("[", 100000), "exceeded max depth"},
		{"no duration", head + "  duration: 0s\n", "spec.duration: must be more than 0s"},
		{"a long duration", head + "  duration: 9000h\n", "spec.duration: "},
		{"no node", strings.Replace(head, "[{name: worker}]", "[{name: w, count: 0}]", 1), "0 is not within 1 and 100000"},
		{"many nodes", strings.Replace(head, "[{name: worker}]", "[{name: w, count: 10000000}]", 1), "10000000 is not within 1 and 100000"},
		{"many groups", strings.Replace(head, "[{name: worker}]", "[{name: w, count: 60000}, {name: v, count: 60000}]", 1), "spec.nodes[1].count: makes 120000 nodes"},
		{"twins", strings.Replace(head, "[{name: worker}]", "[{name: w}, {name: w}]", 1), `there is a node "w" in spec.nodes[0] too`},
		{"many pods", head + "  timeline: [{at: 1s, template: {replicas: 1000000, manifest: " + pod + "}}]\n", "replicas: 1000000 is more than 500000"},
		{"many pods in all", head + "  timeline: [{at: 1s, template: {replicas: 400000, manifest: " + pod + "}}, {at: 1s, template: {perNode: 400000, manifest: " + pod + "}}]\n", "spec.timeline: creates 800000"},
		{"a quantity", strings.Replace(head, "worker", "w, capacity: {cpu: 4 cores}", 1), `"4 cores" is no quantity`},
		{"a file without end", head + "  timeline: [{at: 1s, apply: {file: /dev/zero}}]\n", "larger than 32 MiB"},
	} {
		file := write(t, "s.yaml", tt.text)
		for _, cmd := range []string{"run", "validate", "list"} {
			code, stdout, stderr := drydock(t, cmd, file)
			if code != exitBadInput || stdout != "" {
				t.Errorf("%s: %s: exit code %d, stdout %q", cmd, tt.name, code, stdout)
			}
			if !strings.Contains(stderr, tt.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s: %s: stderr %q, want one line with %q", cmd, tt.name, stderr, tt.want)
			}
		}
	}
}

func TestSchemaIsJSON(t *testing.T) {
	if _, schema, _ := drydock(t, "schema"); !json.Valid([]byte(schema)) {
		t.Error("the schema is no JSON")
	}
}

func TestManyErrorsAreCutShort(t *testing.T) {
	_, _, stderr := drydock(t, "run", write(t, "s.yaml", head+"  timeline: ["+strings.Repeat("{at: -1s}, ", 300)+"]\n"))
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if last := lines[len(lines)-1]; len(lines) != maxErrors+1 || !strings.HasSuffix(last, "more errors") {
		t.Errorf("%d lines; the last: %s", len(lines), last)
	}
}

// walls are what differs from run to run: wall times and rates. The hash tells
// no reader anything.
var walls = regexp.MustCompile(`virtual in .* node-seconds/s|[0-9]+ records; hash [0-9a-f]{16}`)

func TestTextOutput(t *testing.T) {
	code, stdout, stderr := drydock(t, "run", crash)
	if code != exitOK || stderr != "" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	got := walls.ReplaceAllString(stdout, "...")
	const golden = "testdata/crash.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the output is not that of %s (-update writes it anew):\n%s", golden, got)
	}
}

// decoded is what users may rely on of the JSON output.
type decoded struct {
	Passed      bool
	Interrupted bool
	Results     []struct {
		Scenario, File, Repeat, Error string
		Seed                          uint64
		Passed                        bool
		Seeds                         *struct {
			Ran, Failed  int
			FirstFailing *uint64
		}
		Expectations []struct {
			Name, Form, When, Expression, Outcome, Reason string
			DecidedAtSeconds                              *float64
			Values                                        []struct{ Expression, Value string }
			Objects                                       []struct{ Kind, Namespace, Name string }
			History                                       []string
		}
		Summary struct {
			Nodes                                            int
			Pods                                             map[string]int
			VirtualSeconds                                   float64
			SteadyFromSeconds                                *float64
			Hash                                             string
			LeasesRenewed, Records, Syncs, Resyncs, Probes   uint64
			Wall                                             struct{ LoadSeconds, TotalSeconds float64 }
			NodeSecondsPerSecond, SteadyNodeSecondsPerSecond float64
		}
	}
}

func runJSON(t *testing.T, want int, args ...string) decoded {
	t.Helper()
	code, stdout, _ := drydock(t, append([]string{"run", "-o", "json"}, args...)...)
	var d decoded
	if err := json.Unmarshal([]byte(stdout), &d); err != nil || code != want {
		t.Fatalf("exit code %d, %v:\n%s", code, err, stdout)
	}
	if d.Passed != (code == exitOK) {
		t.Errorf("passed is %v with exit code %d", d.Passed, code)
	}
	return d
}

func TestJSONOutput(t *testing.T) {
	r := runJSON(t, exitOK, crash).Results[0]
	x := r.Expectations[0]
	if r.Scenario != "crash" || r.File != crash || !r.Passed || len(r.Expectations) != 2 || r.Expectations[1].Name != "it is gone in the end" {
		t.Errorf("%+v", r)
	}
	if x.Form != "by" || x.When != "by 35s" || x.Expression != `restarts("default/web") == 1` || x.Outcome != "held" || x.DecidedAtSeconds == nil || *x.DecidedAtSeconds < 10 || *x.DecidedAtSeconds > 35 {
		t.Errorf("%+v", x)
	}
	if s := r.Summary; s.VirtualSeconds != 40 || s.Nodes != 1 || len(s.Hash) != 16 || s.Records == 0 || s.LeasesRenewed == 0 || s.Wall.TotalSeconds <= 0 || s.NodeSecondsPerSecond <= 0 {
		t.Errorf("%+v", s)
	}

	r = runJSON(t, exitFailed, crash, "--set", `spec.expect[0]={at: 2s, that: 'ready(pod("default/web"))'}`).Results[0]
	x = r.Expectations[0]
	if x.Outcome != "failed" || x.Reason == "" || len(x.Values) == 0 || x.Values[0].Value == "" || len(x.History) == 0 {
		t.Errorf("%+v", x)
	}
	if !strings.Contains(r.Repeat, "--set") {
		t.Errorf("the command to repeat it lacks the override: %s", r.Repeat)
	}

	r = runJSON(t, exitOK, crash, "--until", "5s").Results[0]
	if x := r.Expectations[0]; x.Outcome != "undecided" || x.DecidedAtSeconds != nil || r.Summary.VirtualSeconds != 5 {
		t.Errorf("%+v", r)
	}
	if d := runJSON(t, exitOK, "testdata", "--seed", "1"); len(d.Results) != 2 || d.Results[0].Seed != 1 {
		t.Errorf("%+v", d)
	}
}

func TestJUnitOutput(t *testing.T) {
	seed := *runJSON(t, exitFailed, flaky, "--seeds", "1-30").Results[0].Seeds.FirstFailing
	code, stdout, stderr := drydock(t, "run", "-o", "junit", "testdata", "--seed", fmt.Sprint(seed))
	var s junitSuites
	if err := xml.Unmarshal([]byte(stdout), &s); err != nil {
		t.Fatalf("%v:\n%s", err, stdout)
	}
	if code != exitFailed || stderr != "" || s.Tests != 2 || s.Failures != 1 || s.Errors != 0 || len(s.Suites) != 2 || len(s.Suites[0].Cases) != 1 || len(s.Suites[1].Cases) != 1 {
		t.Fatalf("exit code %d, stderr %q:\n%s", code, stderr, stdout)
	}
	if c := s.Suites[0].Cases[0]; c.Class != crash || c.File != crash || c.Name != "crash" || c.Failure != nil {
		t.Errorf("%+v", c)
	}
	if c := s.Suites[1].Cases[0]; c.Failure == nil || !strings.Contains(c.Failure.Message, "did not become true by 10s") || !strings.Contains(c.Failure.Text, "what led to it:\n") {
		t.Errorf("%+v", c)
	}
}

// words splits a command line as a shell does, as far as repeat commands need.
func words(line string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(line, -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}

func TestSeedsPrintTheCommandThatRepeats(t *testing.T) {
	code, stdout, _ := drydock(t, "run", flaky, "--seeds", "1,2-30", "--set", "metadata.annotations.note=it is \"so\"")
	if code != exitFailed {
		t.Fatalf("exit code %d:\n%s", code, stdout)
	}
	m := regexp.MustCompile(`(?m)^FAIL flaky: (\d+) of 30 seeds; the first is (\d+); repeat it: drydock (.*)$`).FindStringSubmatch(stdout)
	if m == nil {
		t.Fatal(stdout)
	}
	if m[1] == "30" {
		t.Error("all seeds fail")
	}
	code, again, stderr := drydock(t, words(m[3])...)
	if code != exitFailed || stderr != "" || !strings.Contains(again, "scenario flaky, seed "+m[2]+"\n") {
		t.Errorf("exit code %d, stderr %s:\n%s", code, stderr, again)
	}
}

func TestSeedsRepeat(t *testing.T) {
	d := runJSON(t, exitFailed, flaky, "--seeds", "1-30")
	r := d.Results[0]
	if r.Seeds == nil || r.Seeds.Ran != 30 || r.Seeds.Failed < 1 || r.Seeds.Failed > 29 || r.Seeds.FirstFailing == nil || *r.Seeds.FirstFailing != r.Seed {
		t.Fatalf("%+v", r)
	}
	again := runJSON(t, exitFailed, words(strings.TrimPrefix(r.Repeat, "drydock run "))...).Results[0]
	if again.Summary.Hash != r.Summary.Hash || again.Expectations[0].Reason != r.Expectations[0].Reason {
		t.Errorf("first %+v\nagain %+v", r, again)
	}
	for seed := uint64(1); seed < r.Seed; seed++ {
		if code, _, _ := drydock(t, "run", flaky, "--seed", fmt.Sprint(seed)); code != exitOK {
			t.Errorf("seed %d fails too", seed)
		}
	}
	if code, stdout, _ := drydock(t, "run", crash, "--seeds", "1-5"); code != exitOK || stdout != "PASS crash: 5 seeds\n" {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

func TestTrace(t *testing.T) {
	lines := map[bool]int{}
	for _, reads := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "trace.jsonl")
		args := []string{"run", crash, "--trace", file}
		if reads {
			args = append(args, "--trace-reads")
		}
		if code, _, stderr := drydock(t, args...); code != exitOK {
			t.Fatalf("exit code %d, %s", code, stderr)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		last := -1.0
		for line := range strings.Lines(string(data)) {
			var r struct {
				T                  float64
				Kind, Object, Verb string
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil || r.T < last || r.Kind == "" || r.Verb == "" {
				t.Fatalf("%v: %s", err, line)
			}
			last = r.T
			lines[reads]++
		}
	}
	if lines[false] < 50 || lines[true] <= lines[false] {
		t.Errorf("%d lines, %d with reads", lines[false], lines[true])
	}
}

func TestInterruptedCommands(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	for _, args := range [][]string{
		{crash, "--set", "spec.duration=8000h", "--set", "spec.duration=8000h"},
		{crash, "--set", "spec.duration=8000h", "--seeds", "1-9"},
		{crash, "--verify"},
		{"testdata", "--seeds", "1-9", "-o", "json"},
		{"testdata", "-o", "junit"},
	} {
		var out, errs bytes.Buffer
		began := time.Now()
		code := execute(ctx, append([]string{"run"}, args...), &out, &errs)
		if code != exitFailed || time.Since(began) > 5*time.Second {
			t.Errorf("%v: exit code %d after %v", args, code, time.Since(began))
		}
		if s := out.String() + errs.String(); !strings.Contains(strings.ToLower(s), "interrupted") {
			t.Errorf("%v says nothing of it:\n%s", args, s)
		}
	}
}

func TestInternalErrorsHideTheStack(t *testing.T) {
	list, err := scenarios.LoadPaths([]string{crash}, scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	broken := fmt.Errorf("scenario crash (seed 0): %w", &loop.PanicError{Where: "task sync", Value: "boom", Stack: []byte("goroutine 1 [running]")})
	for _, verbose := range []bool{false, true} {
		var out bytes.Buffer
		f := &runFlags{output: "text", verbose: verbose, stdout: &out, stderr: &out}
		newOutput(f, 1).end(list[0], &scenarios.Result{Scenario: "crash"}, broken)
		if !strings.Contains(out.String(), "INTERNAL ERROR scenario crash (seed 0): task sync panicked: boom\n") {
			t.Error(out.String())
		}
		if got := strings.Contains(out.String(), "goroutine 1"); got != verbose {
			t.Errorf("the stack is shown: %v, with -v: %v", got, verbose)
		}
		if got := strings.Contains(out.String(), "-v shows the stack"); got == verbose {
			t.Errorf("the hint is shown: %v, with -v: %v", got, verbose)
		}
	}
	var v verdict
	v.add(&scenarios.Result{}, broken)
	var ce *codeError
	if !errors.As(v.err(), &ce) || ce.code != exitInternal {
		t.Errorf("%v", v.err())
	}
}
