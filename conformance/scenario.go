//go:build linux

package conformance

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/real/cri"
	"github.com/drydock-sim/drydock/kubelet/real/filesystem"
	"github.com/drydock-sim/drydock/kubelet/real/machine"
	"github.com/drydock-sim/drydock/kubelet/real/mount"
	"github.com/drydock-sim/drydock/kubelet/real/network"
	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/scenarios/expect"
	library "github.com/drydock-sim/drydock/scenarios/library/conformance"
	"github.com/drydock-sim/drydock/sim"
)

// kubeletChecks are the scenarios of the library, their images those of the
// registry and their host paths below dir; without a registry they are as they
// stand. An error here is a mistake in the library, not of the runtime.
func kubeletChecks(reg Registry, dir string) ([]*check, error) {
	// Glob sorts, so checks are in the same order in each report.
	names, err := fs.Glob(library.Files, "*.yaml")
	if err != nil {
		return nil, err
	}
	compiler, err := expect.NewCompiler()
	if err != nil {
		return nil, err
	}
	var out []*check
	for _, file := range names {
		data, err := fs.ReadFile(library.Files, file)
		if err != nil {
			return nil, err
		}
		if reg != nil {
			// The text is changed before it is parsed: images and paths stand in
			// manifests, programs and expressions alike.
			data = bytes.ReplaceAll(rewriteImages(data, reg), []byte(hostDir), []byte(filepath.Join(dir, "host")))
		}
		list, err := scenarios.Parse(file, data, scenarios.LoadOptions{Compiler: compiler, ReadFile: func(name string) ([]byte, error) { return fs.ReadFile(library.Files, name) }})
		if err != nil {
			return nil, fmt.Errorf("the library's %w", err)
		}
		for _, s := range list {
			out = append(out, scenarioCheck(s))
		}
	}
	return out, nil
}

// hostDir is where the library has host paths; a run has a directory of its own.
const hostDir = "/var/lib/drydock-conformance"

// testImage finds names of test images where a YAML document has them as
// values or in the texts of expressions. The group before the name keeps what stands there.
var testImage = regexp.MustCompile(`([ '"\[(])((?:[a-z0-9-]+/)*drydock-actor(?::[a-z0-9-]+|@sha256:0{64}))`)

// rewriteImages has a document's test images pulled from the registry; the
// digest of zeros is that of drydock-actor:1. Zeros stand for a digest that is known only when
// the registry is there.
func rewriteImages(data []byte, reg Registry) []byte {
	return testImage.ReplaceAllFunc(data, func(m []byte) []byte {
		sub := testImage.FindSubmatch(m)
		name := string(sub[2])
		if repo, _, ok := strings.Cut(name, "@"); ok {
			ref := reg.Ref(repo)
			return append(bytes.Clone(sub[1]), ref+"@"+reg.Digest("drydock-actor:1")...)
		}
		return append(bytes.Clone(sub[1]), reg.Ref(name)...)
	})
}

// spare is how much longer than its duration a scenario may take. Pulling and starting take real
// time, besides what the scenario counts.
const spare = 2 * time.Minute

// scenarioCheck makes a check of a scenario of the library. One that says nothing
// of conformance is listed and can't be run.
func scenarioCheck(s *scenarios.Scenario) *check {
	c := s.Spec.Conformance
	out := &check{
		name: "kubelet/" + strings.TrimPrefix(s.Metadata.Name, "conformance-"), level: Required, expect: strings.Join(strings.Fields(s.Metadata.Description), " "),
		timeout: s.Spec.Duration + spare,
	}
	if c == nil {
		return out
	}
	if c.Level == string(Optional) {
		out.level = Optional
	}
	out.alone = !c.Parallel
	out.run = func(ctx context.Context, t *T) { t.scenario(ctx, s) }
	return out
}

// scenario runs a scenario's node on the runtime and judges its expectations. Its kubelet runs in
// this process, on a loop of its own, in real time.
func (t *T) scenario(ctx context.Context, s *scenarios.Scenario) {
	for _, need := range s.Spec.Conformance.Needs {
		if why := t.suite.lacks(ctx, need); why != "" {
			t.Skipf("%s: %s", need, why)
		}
	}
	dir := t.dir()
	// From here on all that is made carries the check's own label, so that its
	// kubelet sees nothing of other checks.
	t.scope.name = t.id
	t.cleanup(func(ctx context.Context) {
		sandboxes, containers := t.rec.made()
		if err := t.suite.clear(ctx, t.scope, sandboxes, containers); err != nil {
			t.Errorf("cleanup: %v", err)
		}
		unmountBelow(dir)
	})
	// Backoffs and jitters differ between checks, and repeat for the same name. The check's name
	// within the run is the seed.
	seed := fnv.New64a()
	fmt.Fprint(seed, t.id)
	l := loop.NewReal(loop.Options{Name: t.id, Seed: seed.Sum64()})
	rt, im, closeCRI, err := cri.NewWithImages(ctx, l, t.suite.o.Endpoint, t.suite.o.ImageEndpoint, 0, nil)
	if err != nil {
		l.Close()
		t.Fatalf("the kubelet's connection to the runtime: %s", describe(err))
	}
	defer func() { _ = closeCRI() }()
	host, err := t.host(l, dir)
	if err != nil {
		l.Close()
		t.Fatalf("%v", err)
	}
	// The kubelet talks to the runtime through the scope, and through nothing
	// else. The recorder sees what the kubelet asks for, before filters change it.
	host.RuntimeService = &scopedRuntime{RuntimeService: rt, scope: t.scope, rec: t.rec}
	host.ImageService = &scopedImages{ImageManagerService: im, prefix: t.suite.prefix(), rec: t.rec}
	number := l.Seed()
	// In real time: the scenario's duration is that of the check.
	res, err := scenarios.Run(ctx, s, scenarios.RunOptions{Seed: &number, Real: &scenarios.Real{Loop: l, Host: host}})
	if err != nil {
		t.Errorf("%v", err)
	}
	t.judge(res)
}

// host is this machine for a kubelet with its files below dir. Its capacity and
// addresses are the real ones, because the kubelet reports and uses them. The kubelet's
// directories are real; mounts and networks are the machine's.
func (t *T) host(l *loop.Loop, dir string) (*sim.Host, error) {
	// All of the kubelet's files are below dir, which goes with the check.
	h := &sim.Host{
		RootDir: filepath.Join(dir, "kubelet"), ManifestDir: filepath.Join(dir, "manifests"), LogsDir: filepath.Join(dir, "logs"),
		FS: filesystem.New(l), Mounter: mount.New(), Network: network.New(l), Config: guest,
	}
	if err := os.MkdirAll(h.RootDir, 0o755); err != nil {
		return nil, err
	}
	m, err := machine.New(h.RootDir)
	if err != nil {
		return nil, fmt.Errorf("the machine's facts: %w", err)
	}
	h.Machine = m
	return h, nil
}

// guest leaves the machine's cgroups and other images alone: a check is about
// the runtime, and others may be at work there. Garbage collection and eviction would act on what
// is the machine's.
func guest(c *kubeletconfig.KubeletConfiguration) {
	c.FailSwapOn, c.FailCgroupV1 = ptr.To(false), ptr.To(false)
	c.CgroupsPerQOS, c.EnforceNodeAllocatable = ptr.To(false), []string{"none"}
	c.SingleProcessOOMKill = ptr.To(true) // cgroup v1 knows nothing else
	c.ImageGCHighThresholdPercent, c.ImageGCLowThresholdPercent = ptr.To[int32](100), ptr.To[int32](99)
	c.EvictionHard = map[string]string{"memory.available": "0%"}
	c.SerializeImagePulls = ptr.To(false)
}

// judge says what of a scenario's result is not as expected. An undecided expectation is a
// failure unless the run was cut short.
func (t *T) judge(res *scenarios.Result) {
	if res == nil {
		return
	}
	if res.Interrupted {
		t.Errorf("the scenario was cut short")
	}
	for _, e := range res.Errors {
		t.Errorf("%s", e)
	}
	for i := range res.Verdicts {
		v := &res.Verdicts[i]
		if v.Outcome == expect.Held {
			continue
		}
		// A run that was cut short has decided nothing, which is no fault of the
		// runtime's.
		if v.Outcome == expect.Undecided {
			if !res.Interrupted {
				t.Errorf("%s: undecided at the end", v.Expectation.Expr)
			}
			continue
		}
		text := v.Expectation.Expr
		if v.Expectation.Name != "" {
			text = v.Expectation.Name + ": " + text
		}
		text = strings.Join(strings.Fields(text), " ") + ": " + v.Reason
		for _, x := range v.Values {
			text += fmt.Sprintf("; %s is %s", x.Expr, x.Value)
		}
		t.Errorf("%s", text)
		// The first failure's history is the one that explains; others mostly
		// follow from it.
		if t.history == nil {
			t.history = v.History
		}
	}
	if len(t.came) > 0 {
		t.history = append(t.history, lastLines(res.Logs, 15)...)
	}
}

// lastLines are the n last, or all. They are the kubelet's own log.
func lastLines(list []string, n int) []string { return list[max(0, len(list)-n):] }
