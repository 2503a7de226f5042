package sim_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim"
)

var (
	lifecycleSeeds = flag.Int("lifecycle.seeds", 50, "how many seeds TestRandomLifecycles runs")
	lifecycleTrace = flag.String("lifecycle.trace", "", "log the records about what has this in its name, with -v")
	lifecycleFirst = flag.Int("lifecycle.first", 0, "the first seed of TestRandomLifecycles")
	lifecycleCheck = flag.Int("lifecycle.check", 10, "TestRandomLifecycles checks elision under one seed of so many")
)

// lifeRun is one run: random pods, random acts, then quiet.
type lifeRun struct {
	seed        uint64
	c           *sim.Cluster
	pods        []*lifePod
	statics     []func()
	staticNodes []*sim.Node
	cuts        map[string]bool // nodes whose power was cut
	deletes     bool            // everything is deleted in the end
	watch       lifeWatch
	failures    []string
}

func (r *lifeRun) fail(format string, args ...any) {
	if len(r.failures) < 20 {
		r.failures = append(r.failures, fmt.Sprintf("%8.3f ", r.c.Now().Seconds())+fmt.Sprintf(format, args...))
	}
}

// newLifeRun draws a cluster and all that happens to it.
func newLifeRun(t *testing.T, seed uint64, mode loop.ElisionMode) *lifeRun {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 1)), objects: []string{"early", "late", "later"}}
	c, err := sim.New(sim.Options{Seed: seed, Workers: 1, APILatencyMax: 20 * time.Millisecond, Elision: mode, Census: true, KubeletLogs: *lifecycleTrace != ""})
	if err != nil {
		t.Fatal(err)
	}
	r := &lifeRun{seed: seed, c: c, cuts: map[string]bool{}, deletes: seed%2 == 0}
	r.watch.init(r)
	nodes := m.between(1, 2)
	for i := range nodes {
		if _, err := c.AddNode(sim.NodeOptions{Name: fmt.Sprint("n", i), Runtime: fakecri.Options{Programs: lifePrograms}}); err != nil {
			t.Fatal(err)
		}
	}
	r.putObjects(0, "early", 1)
	r.putObjects(m.seconds(100), "late", 1)
	r.putObjects(m.seconds(200), "later", 1)
	for i := range m.between(10, 25) {
		p := m.pod(fmt.Sprint("p", i), fmt.Sprint("n", m.IntN(nodes)))
		r.pods = append(r.pods, p)
		r.create(p.at, p.pod)
	}
	for i := range m.IntN(3) {
		r.static(m, c.Nodes()[m.IntN(nodes)], i)
	}
	for range m.between(10, 50) {
		r.act(m)
	}
	if r.deletes {
		r.deleteAll(m)
	}
	return r
}

// deleteAll has every pod deleted when all faults are over.
func (r *lifeRun) deleteAll(m *maker) {
	for i, remove := range r.statics {
		r.staticNodes[i].At(faultsEnd+m.seconds(10), remove)
	}
	for i := range 25 {
		grace := []*int64{nil, nil, nil, ptr.To[int64](0), ptr.To[int64](1), ptr.To[int64](30)}[m.IntN(6)]
		r.delete(faultsEnd+m.seconds(10), fmt.Sprint("p", i), grace)
	}
	for _, p := range r.pods {
		if !strings.HasPrefix(p.pod.Name, "p") { // a static pod's twin
			r.delete(faultsEnd+15*time.Second, p.pod.Name, nil)
		}
	}
}

// run runs it and holds it to the properties.
func (r *lifeRun) run(t *testing.T) {
	for now := time.Duration(0); now < faultsEnd; now += time.Second {
		r.runUntil(t, now)
		r.watch.look()
	}
	end := faultsEnd + 7*time.Minute
	if r.deletes {
		end = faultsEnd + 5*time.Minute
	}
	for now := faultsEnd; now < end; now += 5 * time.Second {
		r.runUntil(t, now)
		r.watch.look()
	}
	r.runUntil(t, end)
	r.watch.look()
	r.settled()
}

func (r *lifeRun) runUntil(t *testing.T, at time.Duration) {
	if err := r.c.RunUntil(at); err != nil {
		t.Fatalf("seed %d: %v", r.seed, err)
	}
}

// settled is what holds in the end.
func (r *lifeRun) settled() {
	api := map[string]*v1.Pod{} // by the UID that the runtime knows
	for _, p := range r.c.Store().Pods() {
		uid := string(p.UID)
		if hash, ok := p.Annotations[v1.MirrorPodAnnotationKey]; ok {
			uid = hash
		}
		api[uid], api[string(p.UID)] = p, p
		if r.deletes || p.DeletionTimestamp != nil {
			r.fail("pod %s of %s is still there: phase %s, deleted at %v", p.Name, p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp)
		}
	}
	for _, n := range r.c.Nodes() {
		for _, s := range n.Runtime().Sandboxes() { // a static pod whose mirror's name is taken
			if !r.deletes && api[s.UID] == nil && !strings.Contains(s.UID, "-") {
				api[s.UID] = &v1.Pod{}
			}
		}
		r.settledRuntime(n, api)
		r.settledKubelet(n, api)
	}
	for _, p := range r.c.Store().Pods() {
		r.settledPod(p)
	}
	// What was seen in the API only finds the same.
	census := r.c.Census()
	for _, l := range census.Leaks {
		if r.deletes || l.What != "task" {
			r.fail("census: %s", l)
		}
	}
	// Pods that ended before a restart of the kubelet have no worker.
	if n := len(r.c.Store().Pods()); census.Pods != n || n > 0 && (census.Workers == 0 || census.Statuses < n) {
		r.fail("census: %d pods, %d workers, %d statuses; the API has %d pods", census.Pods, census.Workers, census.Statuses, n)
	}
}

func (r *lifeRun) settledRuntime(n *sim.Node, api map[string]*v1.Pod) {
	for _, s := range n.Runtime().Sandboxes() {
		if api[s.UID] == nil {
			r.fail("%s: a sandbox of pod %s is left, ready %v", n.Name(), s.Pod, s.Ready)
		} else if p := api[s.UID]; s.Ready && terminal(p) {
			r.fail("%s: a sandbox of the ended pod %s is ready", n.Name(), s.Pod)
		}
	}
	for _, c := range n.Runtime().Containers() {
		p := api[c.UID]
		if p == nil {
			r.fail("%s: container %s of pod %s is left, alive %v", n.Name(), c.Name, c.Pod, c.Alive)
			continue
		}
		if now := n.Loop().UnixNano(); p.Name == "" || p.Spec.RestartPolicy != v1.RestartPolicyAlways && c.Attempt > 0 ||
			// A container that runs again although its policy forbids it, after its
			// sandbox was lost, is upstream's too: the status says ended for ever.
			now-max(c.StartedAt, c.FinishedAt) < int64(time.Minute) {
			continue
		}
		cs := containerStatus(p, c.Name)
		if shown := cs != nil && cs.State.Running != nil && strings.HasSuffix(cs.ContainerID, c.ID); shown != c.Alive {
			r.fail("%s: pod %s (%s), container %s: alive %v, the API shows %+v", n.Name(), p.Name, p.Status.Phase, c.Name, c.Alive, cs)
		}
	}
}

// settledKubelet looks for what is kept of pods that are gone.
func (r *lifeRun) settledKubelet(n *sim.Node, api map[string]*v1.Pod) {
	for _, root := range []string{"/var/lib/kubelet/pods", "/var/log/pods"} {
		dirs, _ := n.FS().ReadDir(root)
		for _, d := range dirs {
			uid := d.Name()[strings.LastIndexByte(d.Name(), '_')+1:]
			if api[uid] == nil {
				r.fail("%s: %s/%s is left", n.Name(), root, d.Name())
			}
		}
	}
	for _, m := range n.FS().Mounts() {
		if uid, below := strings.CutPrefix(m, "/var/lib/kubelet/pods/"); below && api[uid[:strings.IndexByte(uid, '/')]] == nil {
			r.fail("%s: tmpfs %s is left", n.Name(), m)
		}
	}
	gone := map[string]bool{}
	for uid := range r.watch.uids {
		gone[uid] = api[uid] == nil
	}
	for id, c := range r.watch.containers {
		gone[id] = api[c.UID] == nil
	}
	if n.Kubelet() == nil {
		r.fail("%s: its kubelet does not run", n.Name())
		return
	}
	for _, l := range sim.Leaks(n.Kubelet(), gone) {
		r.fail("%s: kubelet%s", n.Name(), l)
	}
	for _, l := range sim.Leaks(n.Runtime(), gone) {
		r.fail("%s: runtime%s", n.Name(), l)
	}
	for _, w := range n.Loop().Waiting() {
		if w.For > 4*time.Minute && w.Name != "kubelet" && (r.deletes || slices.Contains(daemons, w.Group)) {
			r.fail("%s: task %s of %s waits for %s %s since %s", n.Name(), w.Name, w.Group, w.Kind, w.On, w.For)
		}
	}
}

// daemons are the groups of which no task may wait for long, whatever runs.
var daemons = []string{"kubelet", "daemon"}

func terminal(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
}

func containerStatus(p *v1.Pod, name string) *v1.ContainerStatus {
	for _, list := range [][]v1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

func podReady(p *v1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodReady && c.Status == v1.ConditionTrue })
}

// settledPod holds the status of a pod that is left against its program.
func (r *lifeRun) settledPod(p *v1.Pod) {
	if terminal(p) {
		// On the way a status can be sent whose phase is that of the next: the
		// sender looks whether containers may run after it has waited.
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if s.State.Running != nil {
				r.fail("pod %s has ended, its container %s runs", p.Name, s.Name)
			}
		}
		if podReady(p) {
			r.fail("pod %s has ended and is ready", p.Name)
		}
	}
	i := slices.IndexFunc(r.pods, func(l *lifePod) bool { return l.pod.Name == p.Name })
	if i < 0 || metav1.GetControllerOf(p) != nil {
		return
	}
	if r.pods[i].calm && !terminal(p) && !podReady(p) {
		r.fail("pod %s should run, ready: %s", p.Name, describe(p))
	}
	if p.Spec.RestartPolicy == v1.RestartPolicyAlways && r.pods[i].calm && terminal(p) && p.Status.Reason == "" {
		r.fail("pod %s has ended although its containers are always restarted: %s", p.Name, describe(p))
	}
}

func describe(p *v1.Pod) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", p.Status.Phase, p.Status.Reason)
	for _, c := range p.Status.Conditions {
		fmt.Fprintf(&b, " %s=%s", c.Type, c.Status)
	}
	for _, list := range [][]v1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range list {
			fmt.Fprintf(&b, " | %s ready=%v restarts=%d", c.Name, c.Ready, c.RestartCount)
			switch s := c.State; {
			case s.Running != nil:
				b.WriteString(" running")
			case s.Waiting != nil:
				b.WriteString(" waiting " + s.Waiting.Reason + " " + s.Waiting.Message)
			case s.Terminated != nil:
				fmt.Fprintf(&b, " terminated %d %s", s.Terminated.ExitCode, s.Terminated.Reason)
			}
		}
	}
	return b.String()
}

// TestRandomLifecycles runs random pods through random trouble, lets things
// settle and holds what is then, and what was seen on the way, to properties
// that no seed may break. One seed can be run with
//
//	go test ./sim -run RandomLifecycles -lifecycle.first 17 -lifecycle.seeds 1 -v
//
// and many with -lifecycle.seeds 1000; -lifecycle.check 1 checks elision under each.
func TestRandomLifecycles(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	t.Run("seeds", func(t *testing.T) {
		for i := range *lifecycleSeeds {
			seed := uint64(*lifecycleFirst + i)
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				mode := loop.Elide
				if seed%uint64(*lifecycleCheck) == 1%uint64(*lifecycleCheck) {
					mode = loop.CheckElision
				}
				hash := randomLifecycle(t, seed, mode)
				if seed%20 == 0 && randomLifecycle(t, seed, mode) != hash {
					t.Errorf("seed %d gives two traces", seed)
				}
			})
		}
	})
}

// TestElisionKeepsLifecycles compares what the pods come to with and without
// what is left out while nothing changes. In trouble a step that is left out can
// swap what is simultaneous, and a crash loop be a restart ahead: neither counts
// of restarts nor what crashes are compared.
func TestElisionKeepsLifecycles(t *testing.T) {
	for i := range *lifecycleSeeds / 20 {
		seed := uint64(*lifecycleFirst + 2*i + 1) // odd: pods are left
		var finals [2]string
		for j, mode := range []loop.ElisionMode{loop.Elide, loop.NoElide} {
			r := newLifeRun(t, seed, mode)
			r.runUntil(t, faultsEnd+7*time.Minute)
			finals[j] = r.finals()
			r.c.Close()
		}
		if finals[0] != finals[1] {
			t.Errorf("seed %d: with elision\n%s\nwithout\n%s", seed, finals[0], finals[1])
		}
	}
}

// finals are the phases of the pods, and of the calm ones whether they are ready.
func (r *lifeRun) finals() string {
	var b strings.Builder
	for _, p := range r.c.Store().Pods() {
		calm := slices.ContainsFunc(r.pods, func(l *lifePod) bool { return l.pod.Name == p.Name && l.calm })
		fmt.Fprintf(&b, "%s %s %s %v\n", p.Name, p.Status.Phase, p.Status.Reason, calm && podReady(p))
	}
	return b.String()
}

func randomLifecycle(t *testing.T, seed uint64, mode loop.ElisionMode) uint64 {
	r := newLifeRun(t, seed, mode)
	defer r.c.Close()
	if *lifecycleTrace != "" {
		r.c.Records(func(rec *trace.Record) {
			if strings.Contains(rec.Object, *lifecycleTrace) || rec.Kind == trace.KindFault || rec.Kind == trace.KindKubelet || strings.Contains(rec.Verb+fmt.Sprint(rec.Fields), *lifecycleTrace) {
				t.Logf("%9.4f %s %s %s %s %v", float64(rec.At-r.c.Start().UnixNano())/1e9, rec.Node, rec.Kind, rec.Object, rec.Verb, rec.Fields)
			}
		})
	}
	r.run(t)
	for _, f := range r.failures {
		t.Errorf("seed %d: %s", seed, f)
	}
	return r.c.Hash()
}
