//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	internalapi "k8s.io/cri-api/pkg/apis"
	cri "k8s.io/cri-client/pkg"
	"k8s.io/klog/v2"

	"github.com/drydock-sim/drydock/kubelet/real"
)

const (
	// Times of a real machine, generous: a slow one must not fail. Image, back-off of the failing
	// pods and probes all fit into settleTime on a slow machine; removal has the longest grace
	// period in it.
	settleTime = 90 * time.Second // for all pods to be as they should
	lookPeriod = 5 * time.Second
	afterTime  = 20 * time.Second // after a restart: mistakes show by then
	removeTime = 90 * time.Second

	maxProblems = 50
)

// soakTest is one soak: a kubelet, its pods and what is known of both. It is the soak's own
// state; nothing of it survives, unlike the kubelet's.
type soakTest struct {
	// known changes only where a difference was told, so each is told once.
	s    *settings
	p    process
	rt   internalapi.RuntimeService
	list []soakPod
	host string
	// known are the containers of pods that run, by pod and container.
	known    map[string]container
	problems []string
}

// soak runs the whole of it and prints the result. Whatever happens the pods are
// removed at the end, or nobody would do it. The runtime client has a timeout of 10 s per call.
func soak(ctx context.Context, s *settings) error {
	ctx = klog.NewContext(ctx, logr.Discard()) // errors are told by who calls
	rt, err := cri.NewRemoteRuntimeService(ctx, s.endpoint, 10*time.Second, nil, false)
	if err != nil {
		return fmt.Errorf("runtime %s: %w", s.endpoint, err)
	}
	defer func() { _ = rt.Close(ctx) }()
	v, err := rt.Version(ctx, "")
	if err != nil {
		return err
	}
	host := filepath.Join(s.dir, "host")
	r := &soakTest{s: s, p: process{s: s}, rt: rt, host: host, list: pods(s.image, host)}
	// Whatever returns, no kubelet outlives the soak.
	defer r.p.kill()
	fmt.Printf("soak: %d static pods on %s %s for %s\n", len(r.list), v.RuntimeName, v.RuntimeVersion, s.length)
	begin := time.Now()
	if err := r.p.prepare(); err != nil {
		return err
	}
	if err := writeManifests(r.list, r.p.manifests(), host); err != nil {
		return err
	}
	// A soak that can't go on has still made pods on somebody's runtime.
	if err := r.phases(ctx, begin); err != nil {
		r.giveUp()
		return err
	}
	return r.result(ctx)
}

// giveUp removes the pods after a failure, as far as the kubelet still can. The
// error that brought us here is told; those of removing are not. The context of the soak may have
// ended, hence one of its own.
func (r *soakTest) giveUp() {
	if r.p.cmd == nil && r.p.start() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeTime)
	defer cancel()
	_ = r.remove(ctx)
	_ = r.p.stop()
	r.cleanHost()
}

// phases is what happens: two kills in between, one graceful stop near the end,
// and the removal of all pods. It returns the first error that makes going on senseless; mistakes
// of the kubelet's are problems and don't.
func (r *soakTest) phases(ctx context.Context, begin time.Time) error {
	if err := r.p.start(); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	fmt.Printf("soak: all pods are as they should be after %s\n", time.Since(begin).Round(time.Second))
	// A kubelet that is back at once finds everything as it was; after ten
	// seconds containers have ended and probes have been missed.
	for i, down := range [...]time.Duration{0, 10 * time.Second} {
		if err := r.watch(ctx, begin.Add(r.s.length*time.Duration(i+1)/3)); err != nil {
			return err
		}
		if err := r.restart(ctx, fmt.Sprintf("kill -9, %s down", down), down, func() error { r.p.kill(); return nil }); err != nil {
			return err
		}
	}
	// The last restart is a graceful one, late enough to be looked at to the end.
	if err := r.watch(ctx, begin.Add(r.s.length-afterTime)); err != nil {
		return err
	}
	return r.restart(ctx, "SIGTERM, 5s down", 5*time.Second, r.p.stop)
}

// settle waits until every pod is as it should be. What is there then is known,
// and must stay. Restarts are proved by a second attempt, completions by the last one.
func (r *soakTest) settle(ctx context.Context) error {
	end := time.Now().Add(settleTime)
	for {
		// One look a second: a pod that is as it should be once is enough here;
		// from then on every change counts.
		w, err := look(ctx, r.rt)
		if err != nil {
			return err
		}
		wrong := w.unsettled(r.list)
		if len(wrong) == 0 {
			r.known = w.running(r.list)
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %s: %s; see %s", settleTime, strings.Join(wrong, "; "), r.p.logFile(r.p.starts-1))
		}
		if err := r.pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// pause waits; an error says that the kubelet has ended, or the soak. While no
// kubelet is meant to run it only waits. It is everywhere where time passes, so that an end of
// the kubelet is seen within seconds.
func (r *soakTest) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
	}
	if r.p.cmd == nil {
		return nil
	}
	return r.p.running()
}

// watch looks at the pods until a time. The last pause is cut to the end.
func (r *soakTest) watch(ctx context.Context, until time.Time) error {
	for time.Now().Before(until) {
		if err := r.look(ctx, ""); err != nil {
			return err
		}
		if err := r.pause(ctx, min(lookPeriod, time.Until(until))); err != nil {
			return err
		}
	}
	return nil
}

// look compares what runs with what should; when names the moment in problems.
func (r *soakTest) look(ctx context.Context, when string) error {
	w, err := look(ctx, r.rt)
	if err != nil {
		return err
	}
	// What was told is taken for granted from now on, or each look would tell it
	// again.
	wrong := w.differences(r.list, r.known)
	for _, p := range wrong {
		r.problem(when + p)
	}
	if len(wrong) > 0 {
		r.known = w.running(r.list) // each is told once
	}
	return nil
}

// problem notes and prints what is wrong, each text once.
func (r *soakTest) problem(text string) {
	if !slices.Contains(r.problems, text) && len(r.problems) < maxProblems {
		r.problems = append(r.problems, text)
		fmt.Println("soak: PROBLEM:", time.Now().UTC().Format("15:04:05"), text)
	}
}

// restart ends the kubelet, looks while it is down and after its new start.
// Containers run on without a kubelet, and a new one must take them over as they
// are: known is what it is held to. end is how it goes down. A look while it is down finds
// containers that died with it, as they would if they were in its cgroup or had its pipes.
func (r *soakTest) restart(ctx context.Context, how string, down time.Duration, end func() error) error {
	before := len(r.problems)
	if err := end(); err != nil {
		r.problem(err.Error())
	}
	// Down long enough for probes to be missed and for containers to end.
	if err := r.pause(ctx, down); err != nil {
		return err
	}
	// Containers that ended now were killed with their kubelet, which is wrong.
	if err := r.look(ctx, how+", while it is down: "); err != nil {
		return err
	}
	if err := r.p.start(); err != nil {
		return err
	}
	// Every second: a container that is restarted by mistake is back within a
	// few.
	for until := time.Now().Add(afterTime); time.Now().Before(until); {
		if err := r.pause(ctx, time.Second); err != nil {
			return err
		}
		if err := r.look(ctx, how+": "); err != nil {
			return err
		}
	}
	if len(r.problems) == before {
		fmt.Printf("soak: %s: %d containers went on\n", how, len(r.known))
	}
	return nil
}

// result removes the pods, looks for leftovers, and sums up. Only here a count is
// compared with the length: how often a pod should have restarted by now. Leftovers are looked
// for after the kubelet's end: what it has not removed by then stays.
func (r *soakTest) result(ctx context.Context) error {
	w, err := look(ctx, r.rt)
	if err != nil {
		return err
	}
	// What should have happened in all that time, and might as well not have.
	attempts := w.attempts()
	// At five lines a second the log is rotated every half minute.
	if rotated, _ := filepath.Glob(r.p.logs() + "/*_exec" + nodeSuffix + "_*/main/0.log.*.gz"); len(rotated) == 0 {
		r.problem("the log of pod exec was not rotated and compressed, see " + r.p.logs())
	}
	for _, p := range r.list {
		switch n := attempts[p.name]; {
		case p.kind == restarts && n < 3:
			r.problem(fmt.Sprintf("pod %s: only %d restarts", p.name, n))
		case p.kind == restarts:
			fmt.Printf("soak: pod %s: %d restarts, as it should\n", p.name, n)
		}
	}
	if err := r.remove(ctx); err != nil {
		return err
	}
	if err := r.p.stop(); err != nil {
		r.problem(err.Error())
	}
	r.leftovers()
	r.cleanHost()
	if len(r.problems) > 0 {
		return fmt.Errorf("FAILED: %d problems; the kubelet's logs are %s", len(r.problems), filepath.Join(r.s.dir, "kubelet-*.log"))
	}
	fmt.Printf("soak: PASSED: %d kubelets, %d pods, %d containers ran all the time, nothing is left over\n", r.p.starts, len(r.list), len(r.known))
	return nil
}

// remove takes the manifests away and waits until nothing runs. Removing the file is how a static
// pod is deleted.
func (r *soakTest) remove(ctx context.Context) error {
	for _, p := range r.list {
		if err := os.Remove(filepath.Join(r.p.manifests(), p.name+".yaml")); err != nil {
			return err
		}
	}
	for end := time.Now().Add(removeTime); ; {
		w, err := look(ctx, r.rt)
		if err != nil {
			// The kubelet removes a pod's directory when its volumes are unmounted, at the next
			// housekeeping (pkg/kubelet/kubelet_pods.go HandlePodCleanups).
			return err
		}
		// Containers first, then the directories of pods, which go last.
		left := w.alive()
		dirs, err := os.ReadDir(filepath.Join(r.p.root(), "pods"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, d := range dirs {
			left = append(left, "directory of pod "+d.Name())
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(end) {
			r.problem(fmt.Sprintf("%s after the pods were removed there are: %s", removeTime, strings.Join(left, ", ")))
			return nil
		}
		if err := r.pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// leftovers looks for what the kubelet should have cleaned up on the host. It is for the host
// what differences is for the runtime.
func (r *soakTest) leftovers() {
	// A hook that ran twice after a restart is a mistake, as is one that never
	// did.
	hooks, err := os.ReadFile(filepath.Join(r.host, "hooks"))
	if got := strings.Fields(string(hooks)); err != nil || strings.Join(got, " ") != "started stopping" {
		r.problem(fmt.Sprintf("the hooks wrote %q, want one started and one stopping", got))
	}
	// A volume that is still mounted keeps its pod's directory for ever.
	mounts, _ := os.ReadFile("/proc/mounts")
	if strings.Contains(string(mounts), filepath.Join(r.p.root(), "pods")+"/") {
		r.problem("volumes are still mounted below " + r.p.root())
	}
	// Under cgroup v1 there is a hierarchy for each controller; all must be
	// empty.
	groups, _ := filepath.Glob("/sys/fs/cgroup/*" + r.p.cgroupRoot() + "/kubepods/*/pod*")
	more, _ := filepath.Glob("/sys/fs/cgroup/*" + r.p.cgroupRoot() + "/kubepods/pod*")
	if groups = append(groups, more...); len(groups) > 0 {
		r.problem(fmt.Sprintf("%d cgroups are left, such as %s", len(groups), groups[0]))
	}
}

// cleanHost removes what outlives a kubelet: the cgroups above the pods', the
// mount that its root directory is, and links to the logs of containers that the
// runtime still has. Cgroups are removed from the innermost outwards, as rmdir wants them.
func (r *soakTest) cleanHost() {
	// Links of other kubelets stay: only those that lead to the soak's logs go.
	links, _ := filepath.Glob(filepath.Join(real.DefaultContainerLogsDir, "*"+nodeSuffix+"_*.log"))
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && strings.HasPrefix(to, r.p.logs()+"/") {
			_ = os.Remove(l)
		}
	}
	for _, below := range [...]string{"/kubepods/burstable", "/kubepods/besteffort", "/kubepods", ""} {
		dirs, _ := filepath.Glob("/sys/fs/cgroup/*" + r.p.cgroupRoot() + below)
		for _, d := range append(dirs, "/sys/fs/cgroup"+r.p.cgroupRoot()+below) {
			_ = os.Remove(d)
		}
	}
	// The kubelet makes its root directory a mount of its own, for propagation.
	_ = unix.Unmount(r.p.root(), 0)
}
