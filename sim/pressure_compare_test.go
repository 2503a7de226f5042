package sim_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// pressureAct is something that happened to a pod or a node.
type pressureAct struct {
	at   int64 // ns since the epoch
	what string
}

// pressureActs are what happened, by whom it happened to.
type pressureActs map[string][]pressureAct

var eventLog = regexp.MustCompile(`^event (\S+ \S+) about (\S+ \S+) (.*)$`)

// record takes in a record of the trace: processes and the kubelet's events, in
// which amounts are left out, since they change by the nanosecond.
func (a pressureActs) record(rec *trace.Record) {
	switch {
	case rec.Kind == trace.KindProcess:
		a[rec.Object] = append(a[rec.Object], pressureAct{rec.At, rec.Verb})
	case rec.Kind == trace.KindLog && strings.HasPrefix(rec.Verb, "event "):
		f := eventLog.FindStringSubmatch(rec.Verb)
		what, _, _ := strings.Cut(f[3], "Threshold quantity")
		a[f[2]] = append(a[f[2]], pressureAct{rec.At, f[1] + " " + what})
	}
}

// statuses are those of the pods and of the node, without what is drawn or
// changes by the nanosecond.
func (r *pressRun) statuses() map[string]string {
	out := map[string]string{}
	for _, p := range r.c.Store().Pods() {
		s := fmt.Sprint(p.Status.Phase, " ", p.Status.Reason, " ")
		message, _, _ := strings.Cut(p.Status.Message, "Threshold quantity")
		s += message
		for _, c := range p.Status.Conditions {
			s += fmt.Sprint(" ", c.Type, "=", c.Status, " ", c.Reason)
		}
		if p.Status.Reason == "Evicted" {
			// A kill at the instant of a relist is a tie: the container may be removed
			// before its status is read.
			out[p.Name] = s
			continue
		}
		for _, c := range p.Status.ContainerStatuses {
			s += fmt.Sprint(" ", c.Name, " ", c.RestartCount, " ", c.Ready)
			if c.State.Terminated != nil {
				s += fmt.Sprint(" ", c.State.Terminated.ExitCode, " ", c.State.Terminated.Reason)
			}
		}
		out[p.Name] = s
	}
	for _, c := range r.c.Store().Node("n0").Status.Conditions {
		out["node "+string(c.Type)] = fmt.Sprint(c.Status, " ", c.Reason)
	}
	return out
}

// sameAs holds two runs, one with what is left out and one without, to the same
// acts at the same times, and the same ends.
func (r *pressRun) sameAs(t *testing.T, o *pressRun) {
	if r.filled { // which of two writes at one instant finds room is anybody's guess
		return
	}
	objects := map[string]bool{}
	for name := range r.did {
		objects[name] = true
	}
	for name := range o.did {
		objects[name] = true
	}
	for name := range objects {
		r.sameActs(t, name, r.did[name], o.did[name])
	}
	a, b := r.statuses(), o.statuses()
	for name := range a {
		if a[name] != b[name] {
			t.Errorf("seed %d: %s: %s; if nothing is left out: %s", r.seed, name, a[name], b[name])
		}
	}
	if len(a) != len(b) {
		t.Errorf("seed %d: %d pods, and %d if nothing is left out", r.seed, len(a), len(b))
	}
}

func (r *pressRun) sameActs(t *testing.T, name string, some, all []pressureAct) {
	const near = int64(10 * time.Millisecond)
	start := r.c.Start().UnixNano()
	for i := range max(len(some), len(all)) {
		if i >= len(some) || i >= len(all) {
			t.Errorf("seed %d: %s: %d acts, and %d if nothing is left out", r.seed, name, len(some), len(all))
			return
		}
		a, b := some[i], all[i]
		limit := near
		if strings.Contains(a.what, "status is now") {
			// Whether the node is registered when it is first looked for is a tie; it
			// moves all statuses by a round trip, so one may just miss a pass.
			limit = int64(11 * time.Second)
		}
		if d := a.at - b.at; a.what != b.what || d > limit || d < -limit {
			t.Errorf("seed %d: %s: at %.4f %s; if nothing is left out at %.4f %s", r.seed, name, float64(a.at-start)/1e9, a.what, float64(b.at-start)/1e9, b.what)
			return
		}
	}
}

// cleared deletes all pods and holds the node to having nothing left of them.
func (r *pressRun) cleared(t *testing.T) {
	for i := range len(r.pods) {
		name := fmt.Sprint("p", i)
		p := r.pods[name]
		if p.static {
			if err := r.n.RemoveStaticPod(p.pod.Name + ".yaml"); err != nil && !r.filled {
				r.fail("removing %s: %v", name, err)
			}
			continue
		}
		_ = r.c.API().Delete(apiserver.KindPod, "default", name, metav1.DeleteOptions{})
	}
	end := r.c.Now() + 6*time.Minute
	if err := r.c.RunUntil(end); err != nil {
		t.Fatalf("seed %d: %v", r.seed, err)
	}
	for _, p := range r.c.Store().Pods() {
		r.fail("pod %s is there, deleted at %v: %s", p.Name, p.DeletionTimestamp, p.Status.Phase)
	}
	census := r.c.Census()
	for _, l := range census.Leaks {
		r.fail("left: %v", l)
	}
	if census.Sandboxes+census.Containers+census.VolumeDirs+census.LogDirs+census.Mounts+census.Workers+census.Statuses > 0 {
		r.fail("left: %+v", census)
	}
	u := r.n.Runtime().NodeUsage()
	if u.PodsMemory != 0 || u.PodsPIDs != 0 || u.PodsMilliCPU != 0 {
		r.fail("without pods they use %+v", u)
	}
	if got, want := u.PIDs, r.usage.PIDs.At(r.c.Now(), 0); got != want {
		r.fail("the machine has %d processes, of its own %d", got, want)
	}
	if r.filled {
		return
	}
	var used, inodes, images int64
	for _, d := range r.n.Disks() {
		used += d.Used().Bytes
		inodes += d.Used().Inodes
	}
	for _, image := range r.n.Runtime().PresentImages() {
		images += int64(image.Size)
	}
	used -= r.usage.Disk.At(r.c.Now(), 0) + images
	inodes -= r.usage.Inodes.At(r.c.Now(), 0)
	// The kubelet's checkpoints, records of images, and directories.
	if used < 0 || used > 128<<10 || inodes < 0 || inodes > 32 {
		r.fail("%d bytes and %d inodes are on the disks", used, inodes)
	}
}
