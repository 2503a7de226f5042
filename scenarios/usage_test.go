package scenarios

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// usageFiles has the CSV files that the texts below name.
func usageFiles(name string) ([]byte, error) {
	files := map[string]string{
		"dir/mem.csv":   "time,memory\n0,100Mi # at the start\n\n1m, 200Mi\n90,200Mi\n90,1Gi\n",
		"dir/bad.csv":   "0,1Mi\n5,lots\n",
		"dir/back.csv":  "0,1Mi\n5,2Mi\n4,3Mi\n",
		"dir/half.csv":  "0,500m\n",
		"dir/empty.csv": "# nothing\n",
	}
	if text, ok := files[name]; ok {
		return []byte(text), nil
	}
	return nil, os.ErrNotExist
}

func parseUsage(text string) (*Scenario, error) {
	list, err := Parse("dir/f.yaml", []byte(text), LoadOptions{ReadFile: usageFiles})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

func TestUsage(t *testing.T) {
	const mi = 1 << 20
	for _, tt := range []struct {
		field, usage string
		want         map[time.Duration]int64
	}{
		{"memory", "100Mi", map[time.Duration]int64{0: 100 * mi, time.Hour: 100 * mi}},
		{"memory", "{value: 1k}", map[time.Duration]int64{0: 1000}},
		{"cpu", "250m", map[time.Duration]int64{0: 250}},
		{"cpu", "{ramp: {from: 0, to: 1.5, over: 10s}}", map[time.Duration]int64{0: 0, 5 * time.Second: 750, time.Minute: 1500}},
		{"memory", "{lines: [{value: 10}, {at: 10s, value: 20}, {at: 10s, value: 50}]}", map[time.Duration]int64{0: 10, 5 * time.Second: 15, 10 * time.Second: 50, time.Hour: 50}},
		{"memory", "{steps: [{at: 10s, value: 10}, {at: 20s, value: 30}]}", map[time.Duration]int64{0: 10, 19 * time.Second: 10, 20 * time.Second: 30}},
		{"memory", "{steps: [{value: 10}, {at: 20s, value: 30}], repeat: 1m}", map[time.Duration]int64{19 * time.Second: 10, 59 * time.Second: 30, 61 * time.Second: 10, 85 * time.Second: 30}},
		{"processes", "{periodic: {low: 10, high: 20, period: 1m}}", map[time.Duration]int64{0: 10, 15 * time.Second: 15, 30 * time.Second: 20, 60 * time.Second: 10}},
		{"processes", "{periodic: {low: 10, high: 20, period: 1m, shape: square, phase: 30s}}", map[time.Duration]int64{0: 20, 29 * time.Second: 20, 31 * time.Second: 10}},
		{"logBytes", "{ramp: {from: 0, to: 60, over: 1m}, repeat: 2m}", map[time.Duration]int64{30 * time.Second: 30, 110 * time.Second: 60, 150 * time.Second: 30}},
		{"memory", "{file: mem.csv}", map[time.Duration]int64{0: 100 * mi, 30 * time.Second: 150 * mi, 80 * time.Second: 200 * mi, 90 * time.Second: 1024 * mi}},
	} {
		s, err := parseUsage(head + oneNode + "  programs:\n  - match: {pod: a}\n    " + tt.field + ": " + tt.usage + "\n")
		if err != nil {
			t.Errorf("%s: %v", tt.usage, err)
			continue
		}
		b := &s.Spec.Programs[0].Behaviour
		u := map[string]*value.Usage{"memory": b.Memory, "cpu": b.CPU, "processes": b.Processes, "logBytes": b.LogBytes}[tt.field]
		for at, want := range tt.want { //drydock:unordered each is checked
			if got := u.Curve.At(at, 0); got != want {
				t.Errorf("%s at %v: %d, want %d", tt.usage, at, got, want)
			}
		}
	}
}

func TestUsageNoise(t *testing.T) {
	s, err := parseUsage(head + oneNode + "  programs:\n  - match: {pod: a}\n    memory: {value: 1000, noise: {amplitude: 100}}\n")
	if err != nil {
		t.Fatal(err)
	}
	c := s.Spec.Programs[0].Memory.Curve
	values := map[int64]bool{}
	for i := range 100 {
		v := c.At(time.Duration(i)*10*time.Second, 1)
		if v < 900 || v > 1100 {
			t.Errorf("%d is not within the amplitude", v)
		}
		if next := c.At(time.Duration(i)*10*time.Second+9*time.Second, 1); next != v {
			t.Errorf("a draw lasts less than 10s: %d, then %d", v, next)
		}
		values[v] = true
	}
	if len(values) < 20 {
		t.Errorf("%d values in 100 draws", len(values))
	}
}

func TestUsageMistakes(t *testing.T) {
	program := "  programs:\n  - match: {pod: a}\n    "
	node := "  nodes:\n  - name: worker\n    "
	for _, tt := range []struct{ text, want string }{
		{oneNode + program + "memory: {}", "f.yaml:8:5: spec.programs[0].memory: needs an amount, or one of value, ramp, lines, steps, periodic and file"},
		{oneNode + program + "memory: {value: 1, file: mem.csv}", "f.yaml:8:30: spec.programs[0].memory.file: a usage is one thing, but this is value and file"},
		{oneNode + program + "memory: -1", "spec.programs[0].memory: -1 is negative"},
		{oneNode + program + "memory: 500m", "spec.programs[0].memory: 500m is no whole number of bytes (m is a thousandth"},
		{oneNode + program + "processes: 1.5", "spec.programs[0].processes: 1500m is no whole number (m"},
		{oneNode + program + "memory: 2Pi", "spec.programs[0].memory: 2Pi is more than 1Pi"},
		{oneNode + program + "cpu: 2M", "spec.programs[0].cpu: 2M is more than 1M"},
		{oneNode + program + "memory: {ramp: {from: 1, to: 2, over: 0s}}", "f.yaml:8:43: spec.programs[0].memory.ramp.over: must be more than 0s"},
		{oneNode + program + "memory: {ramp: {from: 1, to: -2, over: 1s}}", "spec.programs[0].memory.ramp.to: -2 is negative"},
		{oneNode + program + "memory: {ramp: {from: 1, to: 2, til: 2, over: 1s}}", `unknown field "til"`},
		{oneNode + program + "memory: {step: [{value: 1}]}", `spec.programs[0].memory.step: unknown field "step" (did you mean "steps"?)`},
		{oneNode + program + "memory: {steps: []}", "spec.programs[0].memory.steps: there must be at least one point"},
		{oneNode + program + "memory: {steps: [{at: 5s, value: 1}, {at: 5s, value: 2}]}", "f.yaml:8:47: spec.programs[0].memory.steps[1].at: 5s is not after the point before, 5s"},
		{oneNode + program + "memory: {lines: [{at: 5s, value: 1}, {at: 4s, value: 2}]}", "spec.programs[0].memory.lines[1].at: 4s is not after the point before, 5s"},
		{oneNode + program + "memory: {lines: [{value: 1}, {value: 2}, {value: 3}]}", "spec.programs[0].memory.lines[2].at: this is the third point at 0s"},
		{oneNode + program + "memory: {lines: [{value: 1}, {at: 1m, value: 2}], repeat: 30s}", "spec.programs[0].memory.repeat: repeated every 30s, but its last point is at 1m0s"},
		{oneNode + program + "memory: {value: 1, repeat: 30s}", "spec.programs[0].memory.repeat: an amount that stays, or is periodic, repeats anyway"},
		{oneNode + program + "memory: {periodic: {low: 5, high: 2, period: 1m}}", "f.yaml:8:39: spec.programs[0].memory.periodic.high: 2 is less than low, 5"},
		{oneNode + program + "memory: {periodic: {low: 1, high: 2, period: 1m, shape: sin}}", `spec.programs[0].memory.periodic.shape: "sin" is none of triangle, square, sine (did you mean "sine"?)`},
		{oneNode + program + "memory: {periodic: {low: 1, high: 2, period: 1m, phase: 2m}}", "spec.programs[0].memory.periodic.phase: 2m0s is not within the period, 1m0s"},
		{oneNode + program + "memory: {value: 1, noise: {amplitude: 1, every: 0s}}", "f.yaml:8:53: spec.programs[0].memory.noise.every: 0s is less than 1ms"},
		{oneNode + program + "cpu: {periodic: {low: 2, high: 1500m, period: 1m}}", "spec.programs[0].cpu.periodic.high: 1500m is less than low, 2"},
		{oneNode + program + "cpu: {periodic: {low: 1, high: 2, period: 0s}}", "f.yaml:8:47: spec.programs[0].cpu.periodic.period: 0s is less than 1ms"},
		{oneNode + program + "memory: {file: none.csv}", "f.yaml:8:20: spec.programs[0].memory.file: cannot read the file: file does not exist"},
		{oneNode + program + "memory: {file: bad.csv}", `dir/bad.csv:2:1: spec.programs[0].memory.file: amount "lots": no quantity such as 500m or 1Gi`},
		{oneNode + program + "memory: {file: back.csv}", "dir/back.csv:3:1: spec.programs[0].memory.file: its time 4s is before that of the point before, 5s"},
		{oneNode + program + "memory: {file: half.csv}", `dir/half.csv:1:1: spec.programs[0].memory.file: amount "500m": 500m is no whole number of bytes`},
		{oneNode + program + "memory: {file: empty.csv}", "dir/empty.csv:1:1: spec.programs[0].memory.file: no points"},
		{oneNode + program + "writes: [{path: tmp, bytes: 1}]", `spec.programs[0].writes[0].path: "tmp" is no absolute path`},
		{oneNode + program + "writes: [{path: /tmp}]", "spec.programs[0].writes[0]: writes nothing: needs bytes or inodes"},
		{oneNode + program + "writes: [{path: /tmp, bytes: 1}, {path: /tmp, bytes: 1}]", `spec.programs[0].writes[1].path: "/tmp" is that of writes[0] too`},
		{node + "usage: {memory: 1Gi, disk: 1Gi}", `spec.nodes[0].usage.disk: unknown field "disk"`},
		{node + "usage: {imagefs: 1Gi}", "spec.nodes[0].usage.imagefs: the node has no file system of its own for images: see its filesystems.imagefs"},
		{node + "filesystems: {containerfs: nodefs}", "spec.nodes[0].filesystems.containerfs: without an imagefs everything is on one disk"},
		{node + "filesystems: {imagefs: {}, containerfs: elsewhere}", `"elsewhere" is none of imagefs, nodefs`},
		{node + "capacity: {ephemeral-storage: 10Gi}\n    filesystems: {nodefs: {capacity: 20Gi}}", "spec.nodes[0].filesystems.nodefs.capacity: 20Gi is not the capacity's ephemeral-storage, 10Gi: say one of them"},
		{node + "filesystems: {nodefs: {capacity: 0}}", "spec.nodes[0].filesystems.nodefs.capacity: must be more than 0"},
		{node + "usage: {memory: 1Gi}\n  conformance: {}", "spec.nodes[0].usage: a scenario for conformance runs against a runtime outside: the machine is as it is"},
		{oneNode + "  conformance: {}\n  timeline: [{at: 1s, usage: {memory: 1}}]", "spec.timeline[0].usage: a scenario for conformance"},
		{node + "topology: {sockets: 0}", "f.yaml:7:25: spec.nodes[0].topology.sockets: must be between 1 and 4096"},
		{oneNode + "  expect: [{at: end, that: 'usage(\"workr\").memory > 0'}]", `f.yaml:6:35: spec.expect[0].that: there is no node "workr" (did you mean "worker"?)`},
		{node + "kubelet: {evictionHard: {memory.avail: 1Gi}}", `unsupported eviction signal memory.avail (did you mean "memory.available"?)`},
		{oneNode + "  timeline: [{at: 1s, usage: {}}]", "spec.timeline[0].usage: changes nothing: needs memory"},
		{oneNode + "  timeline: [{at: 1s, usage: {imagefs: 1}}]", "spec.timeline[0].usage.imagefs: the node has no file system"},
		{oneNode + "  timeline: [{at: 1s, usage: {node: nobody, memory: 1}}]", `spec.timeline[0].usage.node`},
		{"  nodes: [{name: a}, {name: b}]\n  timeline: [{at: 1s, usage: {memory: 1}}]", `spec.timeline[0].usage.node`},
	} {
		_, err := parseUsage(head + tt.text + "\n")
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s:\n got %v\nwant %s", tt.text, err, tt.want)
		} else if n := strings.Count(err.Error(), "\n"); n > 0 {
			t.Errorf("%s: more than one error:\n%v", tt.text, err)
		}
	}
}

func TestUsageOfMachines(t *testing.T) {
	s, err := parseUsage(head + `  nodes:
  - name: worker
    filesystems: {nodefs: {capacity: 20Gi, inodes: 1M}, imagefs: {capacity: 10Gi}, containerfs: nodefs}
    usage: {memory: 1Gi, cpu: 100m, pids: 200, nodefs: {ramp: {from: 0, to: 10Gi, over: 1h}}, nodefsInodes: 5k, imagefs: 2Gi, imagefsInodes: 100}
  timeline:
  - {at: 1m, usage: {memory: 2Gi}}
`)
	if err != nil {
		t.Fatal(err)
	}
	u := s.Spec.Nodes[0].Usage
	got := fmt.Sprint(u.Memory.Curve.Peak(), u.CPU.Curve.Peak(), u.PIDs.Curve.Peak(), u.Nodefs.Curve.Peak(), u.NodefsInodes.Curve.Peak(), u.Imagefs.Curve.Peak(), u.ImagefsInodes.Curve.Peak(),
		s.Spec.Timeline[0].Does.(*action.Usage).Memory.Curve.Peak(), s.Spec.Timeline[0].Does.(*action.Usage).Node)
	if want := "1073741824 100 200 10737418240 5000 2147483648 100 2147483648 [worker]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
