package report_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/scale/report"
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// within reports whether d is from a to b.
func within(d, a, b time.Duration) bool { return d >= a && d <= b }

// TestParts starts one pod after the other whose parts are known.
func TestParts(t *testing.T) {
	plain := report.Percentiles{Count: 1}
	for _, c := range []struct {
		name   string
		spec   func(*v1.PodSpec)
		image  string
		pulled [2]time.Duration
		init   [2]time.Duration
		slo    int // pods that the SLO is about
	}{
		{"plain", nil, "app:1", [2]time.Duration{}, [2]time.Duration{}, 1},
		{"pull", nil, "big:1", [2]time.Duration{7 * time.Second, 7100 * time.Millisecond}, [2]time.Duration{}, 1},
		{"init", func(s *v1.PodSpec) {
			s.InitContainers = []v1.Container{{Name: "init", Image: "app:1", Command: []string{"sleep", "3"}}}
		}, "app:1", [2]time.Duration{}, [2]time.Duration{3 * time.Second, 4200 * time.Millisecond}, 1},
		{"init that pulls, then a pull", func(s *v1.PodSpec) {
			s.InitContainers = []v1.Container{{Name: "init", Image: "big:1", Command: []string{"sleep", "3"}}}
			s.Containers[0].Image = "other:1"
		}, "app:1", [2]time.Duration{8900 * time.Millisecond, 9100 * time.Millisecond}, [2]time.Duration{3 * time.Second, 4200 * time.Millisecond}, 1},
		{"host path", func(s *v1.PodSpec) {
			s.Volumes = []v1.Volume{{Name: "x", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/var"}}}}
		}, "app:1", [2]time.Duration{}, [2]time.Duration{}, 0},
		{"secret that is not there", func(s *v1.PodSpec) {
			yes := true
			s.Volumes = []v1.Volume{{Name: "x", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "none", Optional: &yes}}}}
		}, "app:1", [2]time.Duration{}, [2]time.Duration{}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl, k := newCluster(t, 3, 1)
			run(t, cl, 30*time.Second)
			var running time.Duration
			cl.API().OnChange(func(x apiserver.Change) {
				if p, ok := x.New.(*v1.Pod); ok && p.Status.Phase == v1.PodRunning && running == 0 {
					running = cl.API().Loop().Since(cl.Start())
				}
			})
			create(t, cl, template(t, cl, "p", c.image, c.spec), "p", 1)
			run(t, cl, time.Minute)
			s := k.Report().Startup
			if s.Pods != 1 || s.Waiting != 0 || s.SLI.Count != c.slo {
				t.Fatalf("%d pods, %d on their way, %d for the SLO", s.Pods, s.Waiting, s.SLI.Count)
			}
			if d := s.Total.P50 - (running - 30*time.Second); !within(d, 4*time.Millisecond, 11*time.Millisecond) {
				t.Errorf("started after %v, the status came at %v", s.Total.P50, running)
			}
			if d := s.Parts[report.Pulling].P50; !within(d, c.pulled[0], c.pulled[1]) {
				t.Errorf("pulled for %v", d)
			}
			if d := s.Parts[report.Init].P50; !within(d, c.init[0], c.init[1]) {
				t.Errorf("init containers for %v", d)
			}
			var sum time.Duration
			for p, x := range s.Parts {
				if x.Count != plain.Count {
					t.Errorf("part %d of %d pods", p, x.Count)
				}
				sum += x.P50
			}
			if sum != s.Total.P50 {
				t.Errorf("the parts come to %v, not %v", sum, s.Total.P50)
			}
			if c.slo > 0 && s.SLI.P50 != sum-s.Parts[report.Pulling].P50-s.Parts[report.Init].P50 || s.SLI.P50 > 2*time.Second {
				t.Errorf("%v for the SLO", s.SLI.P50)
			}
		})
	}
}

// TestUnschedulable starts a pod that could not be scheduled as it came: the SLO
// is not about it.
func TestUnschedulable(t *testing.T) {
	c, k := newCluster(t, 1, 1)
	run(t, c, 30*time.Second)
	create(t, c, template(t, c, "a", "app:1", func(s *v1.PodSpec) { s.NodeSelector = map[string]string{"no": "such"} }), "a", 1)
	create(t, c, template(t, c, "b", "app:1", nil), "b", 1)
	run(t, c, time.Minute)
	r := k.Report()
	if s := r.Startup; s.Pods != 1 || s.Waiting != 1 || s.SLI.Count != 1 {
		t.Errorf("%d pods started, %d wait, %d for the SLO", s.Pods, s.Waiting, s.SLI.Count)
	}
	last := r.Over[len(r.Over)-1]
	if last.Pods[report.Unscheduled] != 1 || last.Pods[report.Running] != 1 {
		t.Errorf("%v", last.Pods)
	}
}

// TestSameHash runs a cluster with and without a collector.
func TestSameHash(t *testing.T) {
	hash := func(attach bool) uint64 {
		c, err := sim.New(sim.Options{Seed: 5, Keep: none})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if attach {
			report.Attach(c, report.Options{})
		}
		addNodes(t, c, 3)
		run(t, c, 20*time.Second)
		create(t, c, template(t, c, "web", "big:1", nil), "web", 20)
		run(t, c, time.Minute)
		return c.Hash()
	}
	if a, b := hash(false), hash(true); a != b {
		t.Errorf("%x without, %x with", a, b)
	}
}

// TestAgain asks for reports while a cluster runs, and holds each to the API.
func TestAgain(t *testing.T) {
	c, k := newCluster(t, 1, 4)
	tmpl := template(t, c, "web", "app:1", nil)
	for i := range 8 {
		create(t, c, tmpl, fmt.Sprintf("web-%d", i), 10)
		run(t, c, time.Duration(i+1)*7*time.Second)
		r := k.Report()
		last := r.Over[len(r.Over)-1]
		for phase, n := range c.PodsByPhase() {
			var got int64
			for p, m := range last.Pods {
				name := report.Phase(p).String()
				if name == string(phase) || phase == v1.PodPending && report.Phase(p) <= report.Starting {
					got += m
				}
			}
			if got != int64(n) {
				t.Errorf("at %v: %d pods %s, the API has %d", r.For, got, phase, n)
			}
		}
		if want := 10 * (i + 1); int(r.Totals.Created) != want || r.Startup.Pods+r.Startup.Waiting != want {
			t.Errorf("at %v: %d created, %d started, %d on their way", r.For, r.Totals.Created, r.Startup.Pods, r.Startup.Waiting)
		}
		if r.Startup.Pods != int(r.Totals.Started) || r.Startup.Pods != r.Startup.Sampled {
			t.Errorf("at %v: %d started, and %d", r.For, r.Startup.Pods, r.Totals.Started)
		}
	}
}

// TestEmpty writes a report of nothing.
func TestEmpty(t *testing.T) {
	c, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := report.Attach(c, report.Options{Title: `<b>"x" & y</b>`}).Report()
	dir := t.TempDir()
	writeDir(t, r, dir)
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "<h1>&lt;b&gt;&#34;x&#34; &amp; y&lt;/b&gt;</h1>") {
		t.Error("the title is not escaped")
	}
	var b bytes.Buffer
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"at the end none\n", "\nStart of pods: none has started, 0 on their way\n\nSLOs\n", "no data"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text does not say %q:\n%s", want, b.String())
		}
	}
}

// TestFiles reads the files back.
func TestFiles(t *testing.T) {
	r := busyReport(t)
	dir := t.TempDir()
	writeDir(t, r, dir)
	rows := map[string]int{"starts.csv": 280, "nodes.csv": 20, "over_time.csv": 179, "slos.csv": 4, "startup.csv": 8}
	for name, want := range rows {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		all, err := csv.NewReader(f).ReadAll()
		f.Close()
		if err != nil || len(all)-1 != want {
			t.Errorf("%s: %d rows, not %d: %v", name, len(all)-1, want, err)
		}
	}
	for _, name := range []string{"over_time.csv", "api_over_time.csv", "api_watches.csv", "api_levels.csv"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
		for _, row := range rows[1:] {
			if at, perr := strconv.ParseFloat(row[0], 64); err != nil || perr != nil || at > r.For.Seconds() {
				t.Errorf("%s has a time of %s in a run of %v: %v", name, row[0], r.For, err)
				break
			}
		}
	}
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"280 created, 280 scheduled, 280 started", "Running 280", "20 Ready", "Pod startup"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text does not say %q:\n%s", want, b.String())
		}
	}
}

// TestWriteError names the file that could not be written.
func TestWriteError(t *testing.T) {
	r := busyReport(t)
	full := func(name string) (io.WriteCloser, error) {
		if name == "nodes.csv" {
			return full{}, nil
		}
		return discard{io.Discard}, nil
	}
	if err := r.WriteDir(full); err == nil || !strings.Contains(err.Error(), "nodes.csv") {
		t.Errorf("%v", err)
	}
}

type discard struct{ io.Writer }

func (discard) Close() error { return nil }

type full struct{}

func (full) Write([]byte) (int, error) { return 0, fmt.Errorf("no space left") }
func (full) Close() error              { return nil }
