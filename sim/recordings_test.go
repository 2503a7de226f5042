package sim_test

import (
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri"
)

// The processes of the recordings.
var (
	// trapLoop is `trap 'exit 0' TERM; while true; do sleep 0.2; done`.
	trapLoop = fakecri.Behaviour{OnTerm: fakecri.OnTerm{After: fakecri.Range{Max: 200 * time.Millisecond}}}
	// deaf is a first process without a handler for SIGTERM.
	deaf = fakecri.Behaviour{OnTerm: fakecri.OnTerm{Ignore: true}}
)

// exits is a process without handler that exits with a code after d.
func exits(d time.Duration, code int32) fakecri.Behaviour {
	return fakecri.Behaviour{RunFor: fakecri.Exactly(max(d, 5*time.Millisecond)), ExitCode: code, OnTerm: fakecri.OnTerm{Ignore: true}}
}

// run is a program: what the container "pod/name" or "name" does; of several
// behaviours, what each of its runs does.
func run(container string, b ...fakecri.Behaviour) fakecri.Program {
	pod, name, ok := strings.Cut(container, "/")
	if !ok {
		pod, name = "", container
	}
	return fakecri.Program{Match: fakecri.Match{Pod: pod, Container: name}, Attempts: b}
}

// replayed says, per recording, what its containers' commands do.
var replayed = map[string][]fakecri.Program{
	"run-to-completion":                 {run("main", exits(0, 0))},
	"fail-never":                        {run("main", exits(0, 3))},
	"onfailure-retry":                   {run("main", exits(0, 2), exits(0, 0))},
	"crashloop-always":                  {run("main", exits(0, 1))},
	"delete-during-crashloop":           {run("main", exits(0, 1))},
	"init-sequence":                     {run("i*", exits(2*time.Second, 0)), run("main", trapLoop)},
	"init-fails-never":                  {run("i1", exits(0, 1)), run("i2", exits(0, 0)), run("main", deaf)},
	"init-delete-while-running":         {run("i1", exits(time.Minute, 0)), run("main", trapLoop)},
	"ignores-term":                      {run("main", deaf)},
	"delete-grace-1":                    {run("main", deaf)},
	"five-containers":                   {run("*", trapLoop)},
	"mixed-exit-never":                  {run("a", exits(2*time.Second, 0)), run("b", exits(4*time.Second, 1)), run("c", exits(6*time.Second, 0))},
	"two-containers-one-crashes":        {run("a", deaf), run("b", exits(3*time.Second, 1))},
	"term-two-containers-different":     {run("fast", trapLoop), run("slow", fakecri.Behaviour{OnTerm: fakecri.OnTerm{After: fakecri.Range{Min: 4 * time.Second, Max: 4200 * time.Millisecond}}})},
	"guaranteed-qos":                    {run("main", trapLoop)},
	"host-network":                      {run("main", trapLoop)},
	"image-absent":                      {run("main", deaf)},
	"image-always-absent-registry":      {run("ok", trapLoop), run("bad", deaf)},
	"image-never-pull":                  {run("main", deaf)},
	"container-stopped-outside":         {run("main", deaf)},
	"label-update-no-restart":           {run("main", trapLoop)},
	"image-update-restarts":             {run("main", trapLoop)},
	"out-of-cpu":                        {run("main", deaf)},
	"selector-mismatch":                 {run("main", deaf)},
	"command-not-found":                 {run("main", fakecri.Behaviour{StartError: startError})},
	"oom-killed":                        {run("main", fakecri.Behaviour{RunFor: fakecri.Exactly(1100 * time.Millisecond), ChildOOMKilled: true})},
	"container-restartpolicy-onfailure": {run("a", exits(2*time.Second, 0)), run("b", exits(3*time.Second, 1)), run("c", trapLoop)},
	"readiness-gate":                    {run("main", trapLoop)},
	"pod-level-resources":               {run("*", trapLoop)},
	"run-as-nonroot-violated":           {run("main", deaf)},
	"resize-infeasible":                 {run("main", trapLoop)},
	"sysctl-forbidden":                  {run("main", deaf)},
	"restart-all-containers":            {run("a", exits(4*time.Second, 88)), run("b", trapLoop), run("i", exits(0, 0))},
	"ephemeral-container":               {run("main", trapLoop), run("dbg", exits(5*time.Second, 0))},
	"sidecar-job":                       {run("side", trapLoop), run("main", exits(5*time.Second, 0))},
	"sidecar-onfailure-job":             {run("side", trapLoop), run("main", exits(2*time.Second, 1), exits(0, 0))},
	"optional-secret-absent":            {run("main", trapLoop)},

	"node-kubelet-restart":    {run("crashing/main", exits(time.Second, 1)), run("*", trapLoop)},
	"node-static-pod":         {run("*", trapLoop)},
	"node-deleted-while-down": {run("*", trapLoop)},
	"node-idle-heartbeats":    nil,
	"node-runtime-down":       {run("*", trapLoop)},
	"node-preemption":         {run("*", deaf)},
	"node-reboot": {
		run("withinit/i?", exits(time.Second, 0)), run("once/main", exits(5*time.Minute, 0)),
		run("done/main", exits(0, 0)), run("*", trapLoop),
	},
}

const startError = `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "/no/such": stat /no/such: no such file or directory: unknown`

// differing is why the replay of a recording is not what was recorded. Such a
// recording must differ: one that does not is taken off the list.
var differing = map[string]string{
	"node-kubelet-restart": "readiness probes are not run yet",
}

const recordings = "testdata/recordings"

var replays = flag.String("replays", "", "keep what the replays of recordings saw in this directory")

// racy is what a recording leaves to chance, so that it may be met by another
// variant than the first.
var racy = map[string]string{
	"container-stopped-outside":    "whether a relist sees the container's end while its pod is still being stopped",
	"crashloop-always":             "whether the resync that follows the last restart by 60 to 90 s comes before the deletion",
	"delete-during-crashloop":      "whether the second start is looked at before or after its relist's event is handled",
	"image-always-absent-registry": "how many of the retries, 10 to 15 s apart, come before the deletion",
	"image-update-restarts":        "whether a relist sees the container's end while its pod is still being stopped",
	"node-reboot":                  "whether the status of a pod that ended is sent before or after its sandbox is stopped",
	"restart-all-containers":       "whether a relist sees the fifth lap's end before the deletion, which comes just then",
}

// variants are what a replay is tried with; those that are not racy with the
// first alone.
var variants = []variant{
	{seed: 0, phase: 600 * time.Millisecond},
	{seed: 1, phase: 0},
	{seed: 2, phase: 200 * time.Millisecond},
	{seed: 3, phase: 400 * time.Millisecond},
	{seed: 4, phase: 800 * time.Millisecond},
}

// TestRecordings replays recordings of the real kubelet and has the referee
// compare what is seen.
func TestRecordings(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("the referee needs python3:", err)
	}
	files, err := filepath.Glob(filepath.Join(recordings, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings", err)
	}
	var names []string
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if _, ok := replayed[name]; !ok {
			t.Errorf("%s: no programs are stated", name)
			continue
		}
		names = append(names, name)
	}
	if len(names) != len(replayed) {
		t.Errorf("%d recordings, but programs for %d", len(names), len(replayed))
	}
	dir := *replays
	if dir == "" {
		dir = t.TempDir()
	}
	verdicts := judge(t, dir, names, variants[0])
	for _, v := range variants[1:] {
		again := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return racy[name] == "" || verdicts[name] == pass })
		maps.Copy(verdicts, judge(t, dir, again, v))
	}
	for _, name := range names {
		compare(t, name, verdicts[name])
	}
	for name := range differing {
		if verdicts[name] == "" {
			t.Errorf("%s: said to differ, but not replayed", name)
		}
	}
}

// pass is the verdict on a replay that agrees with its recording.
const pass = "PASS"

// judge replays recordings with a variant and returns what the referee says of
// each: pass, or what differs.
func judge(t *testing.T, dir string, names []string, v variant) map[string]string {
	out := map[string]string{}
	args := []string{filepath.Join(recordings, "judge.py")}
	for _, name := range names {
		file, seen := filepath.Join(recordings, name+".json"), filepath.Join(dir, name+".json")
		if err := replayFile(file, seen, replayed[name], v); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		args = append(args, file, seen)
	}
	if len(args) == 1 {
		return out
	}
	b, err := exec.Command("python3", args...).Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		verdict, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, why, _ := strings.Cut(rest, ": ")
		switch verdict {
		case "PASS":
			out[name] = pass
		case "DIFF":
			out[name] = why
		}
	}
	return out
}

// compare holds the referee's verdict against what is known to differ.
func compare(t *testing.T, name, verdict string) {
	known, listed := differing[name]
	switch {
	case verdict == "":
		t.Errorf("%s was not judged", name)
	case verdict != pass && !listed:
		t.Errorf("%s differs: %s", name, verdict)
	case verdict == pass && listed:
		t.Errorf("%s does not differ any more, as it was said to: %s", name, known)
	}
}

func replayFile(file, out string, programs []fakecri.Program, v variant) error {
	rec, err := readRecording(file)
	if err != nil {
		return err
	}
	got, err := replay(rec, programs, v)
	if err != nil {
		return err
	}
	b, err := json.Marshal(got)
	if err != nil {
		return err
	}
	return os.WriteFile(out, b, 0o644)
}
