package eviction

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/stats"
)

// TestEmptyDir: a volume is looked at when the pod is first noticed, by the
// minute, and then every one to two minutes; pods are judged every 10 s.
func TestEmptyDir(t *testing.T) {
	n := newMachine(t, Config{})
	n.run(58 * time.Second)
	u := n.add(pod("a", emptyDir("5Mi")), use{dir: mi})
	n.run(4 * time.Second) // the first look was at 60 s
	u.dir = 20 * mi
	n.run(57 * time.Second)
	if len(n.log) != 0 {
		t.Errorf("evicted before the next look: %v", n.log)
	}
	n.run(75 * time.Second)
	if len(n.log) != 2 || !strings.HasSuffix(n.log[0], `Warning Evicted a: Usage of EmptyDir volume "d" exceeds the limit "5Mi". map[]`) ||
		!strings.HasSuffix(n.log[1], "kill a grace=1 Failed Evicted") || n.m.Evictions()[EmptyDirFsLimit] != 1 {
		t.Errorf("got %q, %v", n.log, n.m.Evictions())
	}
}

// TestEphemeralStorage: what the pod uses against the sum of its limits.
func TestEphemeralStorage(t *testing.T) {
	const over = "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. "
	for _, tc := range []struct {
		name string
		use  use
		want string
	}{
		{name: "within", use: use{layer: 5 * mi, logs: 5 * mi}},
		{name: "layer", use: use{layer: 10*mi + 1}, want: over},
		{name: "layer and logs", use: use{layer: 5 * mi, logs: 6 * mi}, want: over},
		{name: "volumes count for the pod", use: use{layer: 5 * mi, dir: 6 * mi}, want: over},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := newMachine(t, Config{})
			n.add(pod("a", storage("10Mi"), emptyDir("1Gi")), tc.use)
			n.run(75 * time.Second)
			if got := strings.Join(n.log, "\n"); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestContainerLimit: a container may be over its limit while the pod is within
// its own. With images on another disk layers don't count.
func TestContainerLimit(t *testing.T) {
	for _, tc := range []struct {
		image int64
		use   use
		want  []string
	}{
		{0, use{layer: 11 * mi}, []string{"0s a"}},
		{100 * gi, use{layer: 11 * mi}, nil},
		{100 * gi, use{logs: 11 * mi}, []string{"0s a"}},
	} {
		n := newMachine(t, Config{})
		n.imageDisk = tc.image
		n.add(pod("a", storage("10Mi"), func(p *v1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "b", Resources: v1.ResourceRequirements{
				Limits: v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("100Mi")}}})
		}), tc.use)
		n.run(15 * time.Second)
		if got := n.kills(); !slices.Equal(got, tc.want) {
			t.Errorf("%+v: killed %q", tc, got)
		}
		if len(n.log) > 0 && !strings.Contains(n.log[0], `a: Container main exceeded its local ephemeral storage limit "10Mi". map[]`) {
			t.Errorf("got %q", n.log)
		}
	}
}

// TestAllInOnePass: every pod over a limit of its own goes in one pass, and then
// nothing is evicted for the node in that pass.
func TestAllInOnePass(t *testing.T) {
	n := newMachine(t, hard("memory.available", "100Mi"))
	n.cleanup = 5 * time.Second
	for _, name := range []string{"a", "b", "c"} {
		n.add(pod(name, storage("1Mi")), use{layer: 2 * mi})
	}
	n.add(pod("d"), use{memory: 8 * gi})
	n.run(6 * time.Second)
	if got := n.kills(); !slices.Equal(got, []string{"0s a", "0s b", "0s c", "5s d"}) {
		t.Errorf("killed %q", got)
	}
}

// TestNoLimitNoTimer: on a machine that nobody counts on, pods without a limit
// cost nothing; a critical pod is not evicted.
func TestNoLimitNoTimer(t *testing.T) {
	n := newMachine(t, Config{}, func(_ *machine, o *Options) { o.Node = false })
	n.add(pod("plain", emptyDir("")), use{layer: gi})
	n.run(time.Second)
	before := n.l.Steps()
	n.run(time.Hour)
	if n.l.Steps() != before || n.m.timer.Set() {
		t.Errorf("%d steps for pods without a limit", n.l.Steps()-before)
	}
	n.add(pod("critical", storage("1Mi"), priority(2000000000)), use{layer: 2 * mi})
	n.run(time.Minute)
	if len(n.log) != 0 {
		t.Errorf("got %q", n.log)
	}
	n.m.RemovePod("critical")
	if n.m.timer.Set() {
		t.Error("a timer without a pod")
	}
}

// slowMachine takes its time to say how much is below a path.
type slowMachine struct {
	*machine
	waits int
}

func (s *slowMachine) UsageWait(ctx context.Context, name string) (bytes, inodes int64, err error) {
	s.waits++
	err = s.l.Sleep(ctx, 5*time.Second)
	bytes, inodes = s.Usage(name)
	return bytes, inodes, err
}

// TestSlowFiles: where reading a volume takes time, a task does it.
func TestSlowFiles(t *testing.T) {
	var s *slowMachine
	n := newMachine(t, Config{}, func(n *machine, o *Options) {
		s = &slowMachine{machine: n}
		o.Volumes = stats.NewVolumes(stats.VolumesOptions{Loop: n.l, Group: n.l.Root(), FS: s, Period: time.Minute, PodDir: func(uid types.UID) string { return "/pods/" + string(uid) }})
	})
	n.add(pod("a", emptyDir("5Mi")), use{dir: 20 * mi})
	n.add(pod("b", emptyDir("5Mi")), use{})
	n.l.Root().After(62*time.Second, func() { n.m.RemovePod("b") }) // while it is being read
	n.run(100 * time.Second)
	if s.waits == 0 || len(n.log) != 2 || !strings.Contains(n.log[0], "exceeds the limit") {
		t.Errorf("%d waits, %q", s.waits, n.log)
	}
	if n.m.o.Volumes.Watched("b") {
		t.Error("a pod that has gone is looked at again")
	}
}
