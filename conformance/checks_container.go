//go:build linux

package conformance

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/actor"
	"github.com/drydock-sim/drydock/ground/lists"
)

const (
	// Short names of the states, as the kubelet's status manager knows them.
	created = runtimeapi.ContainerState_CONTAINER_CREATED
	runs    = runtimeapi.ContainerState_CONTAINER_RUNNING
	exited  = runtimeapi.ContainerState_CONTAINER_EXITED
)

// containerChecks are about containers' lives. The PLEG compares states and
// nothing else: one that is wrong for a moment is an event that never was. States and times must
// agree between status and list, since a kubelet uses both.
func containerChecks() []*check {
	return []*check{
		{name: "cri/container/create", level: Required, run: checkContainerCreate,
			expect: "A container that was created is CONTAINER_CREATED and does not run: created_at is about now, started_at and finished_at are 0, and it is listed with its sandbox."},
		{name: "cri/container/start", level: Required, run: checkContainerStart,
			expect: "A container that was started is CONTAINER_RUNNING by the time StartContainer returns, with started_at no earlier than created_at and finished_at 0."},
		{name: "cri/container/config-kept", level: Required, run: checkContainerConfig,
			expect: "Metadata (name, attempt), labels and annotations come back as they were given, in the status and in lists; the status has image, image_ref and image_id."},
		{name: "cri/container/exit-codes", level: Required, run: checkExitCodes,
			expect: "A container that ends by itself is CONTAINER_EXITED with its exit code, reason Completed for 0 and Error for others, and created_at, started_at and finished_at in order."},
		{name: "cri/container/filters", level: Required, run: checkContainerFilters,
			expect: "ListContainers honours the filters id, state, pod_sandbox_id and label_selector, alone and together, and lists all without one."},
		{name: "cri/container/unknown", level: Required, run: checkContainerUnknown,
			expect: "For an unknown id ContainerStatus fails with NotFound, StartContainer and ExecSync fail, RemoveContainer succeeds, and StopContainer succeeds or fails with NotFound."},
		{name: "cri/container/remove", level: Required, run: checkContainerRemove,
			expect: "RemoveContainer works on containers that are created, running and exited, after which they are not listed and their status is NotFound; a second removal succeeds."},
		{name: "cri/container/start-twice", level: Required, run: checkStartTwice,
			expect: "StartContainer fails for a container that runs and for one that has ended, and does them no harm."},
		{name: "cri/container/attempts", level: Required, run: checkAttempts,
			expect: "A second container with the same name and attempt in a sandbox is refused; the next attempt is not, also while the former is there."},
		{name: "cri/container/stopped-sandbox", level: Required, run: checkStoppedSandbox,
			expect: "CreateContainer in a stopped sandbox fails and leaves nothing."},
		{name: "cri/container/missing-image", level: Required, run: checkMissingImage,
			expect: "CreateContainer with an image that is not there fails, leaves nothing, and works with the same metadata and an image that is."},
		{name: "cri/container/missing-command", level: Required, run: checkMissingCommand,
			expect: "A container whose command does not exist fails to be created or to start, with an error that names the command; it is never running, and can be removed."},
		{name: "cri/container/process", level: Required, run: checkProcess,
			expect: "A container runs command and args in working_dir with envs over the image's environment, as it was told."},
		{name: "cri/container/image-command", level: Required, run: checkImageCommand,
			expect: "Without command the image's entrypoint is run; without args too, with the image's arguments."},
	}
}

// stopChecks are about the ends of containers. Times have wide bounds: what matters is whether a
// timeout was waited for.
func stopChecks() []*check {
	return []*check{
		{name: "cri/stop/graceful", level: Required, run: checkStopGraceful,
			expect: "StopContainer sends SIGTERM, waits for the process, and returns when the container has exited, with the process' own exit code, long before the timeout."},
		{name: "cri/stop/timeout", level: Required, run: checkStopTimeout,
			expect: "A process that ignores SIGTERM is killed when the timeout is over, not before: StopContainer takes that long, and the exit code is 137."},
		{name: "cri/stop/at-once", level: Required, run: checkStopAtOnce,
			expect: "StopContainer with timeout 0 kills at once: exit code 137."},
		{name: "cri/stop/idempotent", level: Required, run: checkStopIdempotent,
			expect: "StopContainer of a container that has ended succeeds and changes nothing."},
		{name: "cri/stop/image-signal", level: Required, run: checkStopSignal,
			expect: "StopContainer sends the signal that the image's configuration says in place of SIGTERM."},
		{name: "cri/stop/shorter", level: Optional, run: checkStopShorter,
			expect: "A second StopContainer with a shorter timeout while the first waits ends the container at that time: kubelets shorten grace periods so."},
	}
}

// listContainers is ListContainers; nil lists all. It is the whole machine's, other guests
// included.
func (t *T) listContainers(ctx context.Context, f *runtimeapi.ContainerFilter) []*runtimeapi.Container {
	r, err := t.rt.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: f})
	t.must(err, "ListContainers")
	return r.Containers
}

// containerIDs are the IDs of such a list.
func (t *T) containerIDs(ctx context.Context, f *runtimeapi.ContainerFilter) []string {
	return lists.Map(t.listContainers(ctx, f), func(c *runtimeapi.Container) string { return c.Id })
}

// theContainer is the one item of a list filtered by id. A filter by id that returns nothing, or
// more, is a failure by itself.
func (t *T) theContainer(ctx context.Context, id string) *runtimeapi.Container {
	list := t.listContainers(ctx, &runtimeapi.ContainerFilter{Id: id})
	if len(list) != 1 || list[0].Id != id {
		t.Fatalf("a list filtered by the container's id has %d items, not that one", len(list))
	}
	return list[0]
}

// removeContainer is RemoveContainer of one that may be removed.
func (t *T) removeContainer(ctx context.Context, id string) {
	_, err := t.rt.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	t.must(err, "RemoveContainer")
}

// checkContainerCreate: one that was created and not started is listed as such,
// with no start and no end: a kubelet that restarts starts or removes it.
func checkContainerCreate(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	c := t.create(ctx, p, nil, "run")
	s, item := t.status(ctx, c.id), t.theContainer(ctx, c.id)
	if s.State != created || item.State != created {
		t.Errorf("its state is %s in the status and %s in the list, not %s", s.State, item.State, created)
	}
	t.aboutNow("created_at in the status", s.CreatedAt)
	if s.CreatedAt != item.CreatedAt {
		t.Errorf("created_at is %d in the status and %d in the list", s.CreatedAt, item.CreatedAt)
	}
	if s.StartedAt != 0 || s.FinishedAt != 0 {
		t.Errorf("started_at is %d and finished_at %d, not 0", s.StartedAt, s.FinishedAt)
	}
	if item.PodSandboxId != p.id {
		t.Errorf("pod_sandbox_id in the list is %q, not %q", item.PodSandboxId, p.id)
	}
}

// checkContainerStart: the start's time is what restart back-off and startup
// probes count from. "By the time StartContainer returns" matters: the kubelet's next relist must
// not see it created.
func checkContainerStart(ctx context.Context, t *T) {
	c := t.running(ctx)
	s, item := t.status(ctx, c.id), t.theContainer(ctx, c.id)
	if s.State != runs || item.State != runs {
		t.Errorf("its state is %s in the status and %s in the list, not %s", s.State, item.State, runs)
	}
	t.aboutNow("started_at", s.StartedAt)
	if s.StartedAt < s.CreatedAt {
		t.Errorf("started_at %d is before created_at %d", s.StartedAt, s.CreatedAt)
	}
	if s.FinishedAt != 0 {
		t.Errorf("finished_at is %d, not 0", s.FinishedAt)
	}
}

// checkContainerConfig: labels and annotations are the kubelet's only memory
// across restarts (pod, restart count, hash, grace period).
func checkContainerConfig(ctx context.Context, t *T) {
	c := t.running(ctx)
	s, item := t.status(ctx, c.id), t.theContainer(ctx, c.id)
	if !proto.Equal(s.Metadata, c.config.Metadata) || !proto.Equal(item.Metadata, c.config.Metadata) {
		t.Errorf("metadata is %v in the status and %v in the list, not %v", s.Metadata, item.Metadata, c.config.Metadata)
	}
	t.sameMap("labels in the status", c.config.Labels, s.Labels, true)
	t.sameMap("labels in the list", c.config.Labels, item.Labels, true)
	t.sameMap("annotations in the status", c.config.Annotations, s.Annotations, true)
	t.sameMap("annotations in the list", c.config.Annotations, item.Annotations, true)
	// kubecontainer's status conversion needs both.
	if s.GetImage().GetImage() == "" || s.ImageRef == "" {
		t.Errorf("image is %q and image_ref %q: kubelets reject a status without them", s.GetImage().GetImage(), s.ImageRef)
	}
	if item.GetImage().GetImage() == "" || item.ImageRef == "" {
		t.Errorf("in the list image is %q and image_ref %q", item.GetImage().GetImage(), item.ImageRef)
	}
}

// checkExitCodes: exit code and reason go into the pod's status as they are.
func checkExitCodes(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	for _, x := range []struct {
		code   int32
		reason string
		args   []string
	}{{0, "Completed", []string{"run", "--for=1s"}}, {3, "Error", []string{"exit", "3"}}, {255, "Error", []string{"exit", "255"}}} {
		s, _ := t.ran(ctx, p, nil, x.args...)
		if s.ExitCode != x.code || s.Reason != x.reason {
			t.Errorf("a process that exits %d has exit_code %d and reason %q, not %q", x.code, s.ExitCode, s.Reason, x.reason)
		}
		// Some runtimes take started_at when their call of the lower one returns,
		// which may be after a short process' end.
		const slack = int64(time.Second)
		if s.FinishedAt < s.StartedAt-slack || s.StartedAt < s.CreatedAt || s.CreatedAt <= 0 {
			t.Errorf("created_at %d, started_at %d and finished_at %d are not in order", s.CreatedAt, s.StartedAt, s.FinishedAt)
		}
		if x.code == 0 && s.FinishedAt-s.CreatedAt < int64(900*time.Millisecond) {
			t.Errorf("a process that ran for a second finished %v after its creation", time.Duration(s.FinishedAt-s.CreatedAt))
		}
		if item := t.theContainer(ctx, s.Id); item.State != exited {
			t.Errorf("in the list it is %s", item.State)
		}
	}
}

// checkContainerFilters: a filter that lets too much through has a kubelet stop
// another's container. All of one kind are made first, and each filter is held against all of
// them.
func checkContainerFilters(ctx context.Context, t *T) {
	value := t.unknownID()[:40]
	label := func(v string) func(*runtimeapi.ContainerConfig) {
		return func(c *runtimeapi.ContainerConfig) { c.Labels["group"], c.Labels["one"] = value, v }
	}
	p, q := t.pod(ctx, nil), t.pod(ctx, nil)
	a, b := t.start(ctx, p, label("a"), "run"), t.create(ctx, p, label("b"), "run")
	c := t.start(ctx, q, nil, "exit", "0")
	t.exited(ctx, c.id)
	state := func(s runtimeapi.ContainerState) *runtimeapi.ContainerStateValue {
		return &runtimeapi.ContainerStateValue{State: s}
	}
	sel := map[string]string{"group": value}
	all := []string{a.id, b.id, c.id}
	for _, x := range []struct {
		what string
		f    *runtimeapi.ContainerFilter
		want []string
	}{
		{"nothing", nil, all},
		{"an empty filter", &runtimeapi.ContainerFilter{}, all},
		{"id", &runtimeapi.ContainerFilter{Id: a.id}, []string{a.id}},
		{"sandbox", &runtimeapi.ContainerFilter{PodSandboxId: p.id}, []string{a.id, b.id}},
		{"state created", &runtimeapi.ContainerFilter{State: state(created)}, []string{b.id}},
		{"state running", &runtimeapi.ContainerFilter{State: state(runs)}, []string{a.id}},
		{"state exited", &runtimeapi.ContainerFilter{State: state(exited)}, []string{c.id}},
		{"a label", &runtimeapi.ContainerFilter{LabelSelector: sel}, []string{a.id, b.id}},
		{"two labels", &runtimeapi.ContainerFilter{LabelSelector: map[string]string{"group": value, "one": "b"}}, []string{b.id}},
		{"a label and a state", &runtimeapi.ContainerFilter{LabelSelector: sel, State: state(runs)}, []string{a.id}},
		{"a sandbox and another's id", &runtimeapi.ContainerFilter{PodSandboxId: q.id, Id: a.id}, nil},
		{"a sandbox and a state", &runtimeapi.ContainerFilter{PodSandboxId: p.id, State: state(exited)}, nil},
		{"a label that none has", &runtimeapi.ContainerFilter{LabelSelector: map[string]string{"group": value, "one": "c"}}, nil},
	} {
		// Others' containers may be listed beside.
		t.sameAmong("a list of containers filtered by "+x.what, all, x.want, t.containerIDs(ctx, x.f))
	}
}

// checkContainerUnknown: NotFound of a status means gone; any other error means
// try again, for ever. StopContainer is let off, since the CRI says that it is idempotent.
func checkContainerUnknown(ctx context.Context, t *T) {
	id := t.unknownID()
	_, err := t.rt.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	t.wantCode(err, codes.NotFound, "ContainerStatus of an unknown id")
	_, err = t.rt.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id})
	t.wantError(err, "StartContainer of an unknown id")
	_, err = t.execErr(ctx, id, "exit", "0")
	t.wantError(err, "ExecSync in an unknown container")
	_, err = t.rt.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id})
	if status.Code(err) != codes.NotFound {
		t.must(err, "StopContainer of an unknown id")
	}
	t.removeContainer(ctx, id)
}

// checkContainerRemove: removing is forced and may be repeated, since garbage
// collection repeats it.
func checkContainerRemove(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	ended := t.start(ctx, p, nil, "exit", "0")
	t.exited(ctx, ended.id)
	for what, id := range map[string]string{"created": t.create(ctx, p, nil, "run").id, "running": t.start(ctx, p, nil, "run").id, "exited": ended.id} {
		t.removeContainer(ctx, id)
		if slices.Contains(t.containerIDs(ctx, nil), id) {
			t.Errorf("a container that was %s is still listed after its removal", what)
		}
		_, err := t.rt.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
		t.wantCode(err, codes.NotFound, "ContainerStatus of a removed container that was "+what)
		t.removeContainer(ctx, id)
	}
}

// checkStartTwice: a second start is an error and harms nothing. A kubelet whose call was cut off
// may repeat it.
func checkStartTwice(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	c := t.start(ctx, p, nil, "run")
	_, err := t.rt.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: c.id})
	t.wantError(err, "StartContainer of a container that runs")
	if s := t.status(ctx, c.id); s.State != runs {
		t.Errorf("after a second StartContainer it is %s", s.State)
	}
	ended := t.start(ctx, p, nil, "exit", "5")
	t.exited(ctx, ended.id)
	_, err = t.rt.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: ended.id})
	t.wantError(err, "StartContainer of a container that has ended")
	if s := t.status(ctx, ended.id); s.State != exited || s.ExitCode != 5 {
		t.Errorf("after a second StartContainer an ended container is %s with exit code %d", s.State, s.ExitCode)
	}
}

// checkAttempts: name and attempt are unique in a sandbox, so a create that is
// repeated after a lost answer can't make two.
func checkAttempts(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	c := t.create(ctx, p, nil, "run")
	_, err := t.rt.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: p.id, Config: c.config, SandboxConfig: p.config})
	t.wantError(err, "CreateContainer with the name and attempt of one that is there")
	next := t.create(ctx, p, func(n *runtimeapi.ContainerConfig) {
		n.Metadata = &runtimeapi.ContainerMetadata{Name: c.config.Metadata.Name, Attempt: c.config.Metadata.Attempt + 1}
	}, "run")
	if next.id == c.id {
		t.Errorf("the next attempt has the same id")
	}
	if got := t.containerIDs(ctx, &runtimeapi.ContainerFilter{PodSandboxId: p.id}); len(got) != 2 {
		t.Errorf("%d containers are listed in the sandbox, not 2", len(got))
	}
}

// checkStoppedSandbox: nothing is created in a sandbox that was stopped; a pod
// gets a new one. The runtime knows better than a kubelet with an old view.
func checkStoppedSandbox(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	c := t.containerConfig(ctx, "run")
	t.stopPod(ctx, p.id)
	_, err := t.rt.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: p.id, Config: c, SandboxConfig: p.config})
	t.wantError(err, "CreateContainer in a stopped sandbox")
	if got := t.containerIDs(ctx, &runtimeapi.ContainerFilter{PodSandboxId: p.id}); len(got) > 0 {
		t.Errorf("the container that could not be created is listed")
	}
}

// checkMissingImage: creating does not pull, and its failure leaves nothing
// behind.
func checkMissingImage(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	c := t.containerConfig(ctx, "run")
	good := c.Image
	c.Image = &runtimeapi.ImageSpec{Image: t.suite.registry.Ref("absent-" + t.id + "/" + testImageName)}
	_, err := t.rt.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: p.id, Config: c, SandboxConfig: p.config})
	t.wantError(err, "CreateContainer with an image that is not there")
	if got := t.containerIDs(ctx, &runtimeapi.ContainerFilter{PodSandboxId: p.id}); len(got) > 0 {
		t.Errorf("the container that could not be created is listed")
	}
	c.Image = good
	_, err = t.rt.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: p.id, Config: c, SandboxConfig: p.config})
	t.must(err, "CreateContainer with the same metadata, after a failure")
}

// checkMissingCommand: a command that is not there is an error of create or of
// start, and never a container that runs. Runtimes differ in which call fails, and both are fine
// by kubelets.
func checkMissingCommand(ctx context.Context, t *T) {
	const name = "/no-such-command"
	p := t.pod(ctx, nil)
	c := t.containerConfig(ctx)
	c.Command = []string{name}
	r, err := t.rt.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: p.id, Config: c, SandboxConfig: p.config})
	if err == nil {
		_, err = t.rt.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: r.ContainerId})
		if s := t.status(ctx, r.ContainerId); s.State == runs || s.State == exited && s.ExitCode == 0 {
			t.Errorf("a container without a command is %s, exit code %d", s.State, s.ExitCode)
		}
	}
	t.wantError(err, "StartContainer of a container whose command does not exist")
	if err != nil && !strings.Contains(err.Error(), name) {
		t.Errorf("the error does not name the command: %s", describe(err))
	}
	if r.GetContainerId() != "" {
		t.removeContainer(ctx, r.ContainerId)
	}
}

// checkProcess: command, arguments, environment and working directory, with what
// the image says where the container says nothing.
func checkProcess(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	_, out := t.ran(ctx, p, func(c *runtimeapi.ContainerConfig) {
		_, id := t.im.get(ctx, actor.Repository+":env")
		c.Image.Image = id
		c.Command, c.WorkingDir = []string{actor.Program, "chain"}, "/tmp"
		// Odd values show whether somebody parses what should be handed on.
		c.Envs = []*runtimeapi.KeyValue{{Key: "OVERRIDDEN", Value: []byte("by the container")}, {Key: "EMPTY", Value: []byte("")}, {Key: "ODD", Value: []byte("a=b $HOME \"c\"")}}
		c.Args = []string{"pwd", "--", "env", "OVERRIDDEN", "--", "env", "FROM_IMAGE", "--", "env", "EMPTY", "--", "env", "ODD", "--", "args", "x y", "", "--z=1"}
	})
	want := "/tmp\nby the container\nimage\n\na=b $HOME \"c\"\n\"x y\"\n\"\"\n\"--z=1\"\n"
	if out != want {
		t.Errorf("it printed %q, not %q", out, want)
	}
}

// checkImageCommand: entrypoint and command of an image combine as Kubernetes
// documents. ENTRYPOINT and CMD are entrypoint and command here; command and args are the
// container's.
func checkImageCommand(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	for _, x := range []struct {
		image string
		args  []string
		want  string
	}{{"cmd", nil, "cmd\n"}, {"entrypoint", nil, "entrypoint cmd\n"}, {"entrypoint", []string{"given"}, "entrypoint given\n"}} {
		_, id := t.im.get(ctx, actor.Repository+":"+x.image)
		if _, out := t.ran(ctx, p, func(c *runtimeapi.ContainerConfig) { c.Image.Image, c.Command = id, nil }, x.args...); out != x.want {
			t.Errorf("image %s with args %q printed %q, not %q", x.image, x.args, out, x.want)
		}
	}
}

// stopped stops a container and tells how long that took. The state is asked for right after the
// call, without waiting: that is the promise.
func (t *T) stopped(ctx context.Context, id string, timeout int64) (time.Duration, *runtimeapi.ContainerStatus) {
	began := time.Now()
	t.stop(ctx, id, timeout)
	took := time.Since(began)
	s := t.status(ctx, id)
	if s.State != exited {
		t.Errorf("when StopContainer returned its state was %s, not %s", s.State, exited)
	}
	return took, s
}

// checkStopGraceful: SIGTERM first, and the process' own exit code.
func checkStopGraceful(ctx context.Context, t *T) {
	c := t.start(ctx, t.pod(ctx, nil), nil, "run", "--stop-exit=7", "--stop-after=500ms")
	// Signals that come before a handler is set act by default.
	t.sleep(ctx, 300*time.Millisecond) // until it has set up its handlers
	took, s := t.stopped(ctx, c.id, 60)
	if s.ExitCode != 7 {
		t.Errorf("the exit code is %d, not the process' own, 7", s.ExitCode)
	}
	if took > 30*time.Second {
		t.Errorf("StopContainer took %v, though the process obeys", took)
	}
}

// checkStopTimeout: what ignores SIGTERM is killed after the grace period, no
// sooner and not much later.
func checkStopTimeout(ctx context.Context, t *T) {
	c := t.start(ctx, t.pod(ctx, nil), nil, "run", "--ignore=TERM")
	t.sleep(ctx, 300*time.Millisecond)
	took, s := t.stopped(ctx, c.id, 3)
	// Half a second less, as clocks and rounding go.
	if took < 2500*time.Millisecond || took > 20*time.Second {
		t.Errorf("StopContainer with a timeout of 3 s took %v", took)
	}
	if s.ExitCode != 137 {
		t.Errorf("the exit code is %d, not 137", s.ExitCode)
	}
}

// checkStopAtOnce: a timeout of 0 kills.
func checkStopAtOnce(ctx context.Context, t *T) {
	c := t.start(ctx, t.pod(ctx, nil), nil, "run", "--stop-exit=7", "--stop-after=60s")
	t.sleep(ctx, 300*time.Millisecond)
	took, s := t.stopped(ctx, c.id, 0)
	if s.ExitCode != 137 {
		t.Errorf("the exit code is %d, not 137", s.ExitCode)
	}
	if took > 15*time.Second {
		t.Errorf("StopContainer with a timeout of 0 took %v", took)
	}
}

// checkStopIdempotent: stopping what has ended is fine and changes neither exit
// code nor time. A kubelet stops all containers of a pod, whether or not it knows that they have
// ended.
func checkStopIdempotent(ctx context.Context, t *T) {
	c := t.start(ctx, t.pod(ctx, nil), nil, "exit", "5")
	before := t.exited(ctx, c.id)
	for range 2 {
		t.stop(ctx, c.id, 1)
		if s := t.status(ctx, c.id); s.ExitCode != 5 || s.FinishedAt != before.FinishedAt || s.State != exited {
			t.Errorf("after StopContainer an ended container is %s, exit code %d, finished at %d; before it had 5 and %d", s.State, s.ExitCode, s.FinishedAt, before.FinishedAt)
		}
	}
}

// checkStopSignal: STOPSIGNAL of the image is sent instead of SIGTERM.
func checkStopSignal(ctx context.Context, t *T) {
	_, id := t.im.get(ctx, actor.Repository+":stop")
	c := t.start(ctx, t.pod(ctx, nil), func(c *runtimeapi.ContainerConfig) { c.Image.Image = id }, "run", "--ignore=TERM", "--stop-exit=7")
	t.sleep(ctx, 300*time.Millisecond)
	took, s := t.stopped(ctx, c.id, 20)
	if s.ExitCode == 137 || took > 15*time.Second {
		t.Errorf("it took %v and the exit code is %d: the process, which ignores SIGTERM and obeys the image's SIGUSR1, had to be killed", took, s.ExitCode)
	}
}

// checkStopShorter: a kubelet that learns of a shorter grace period stops again
// while the first stop still waits; the shorter one must win. It is optional: runtimes may queue
// calls for one container.
func checkStopShorter(ctx context.Context, t *T) {
	c := t.start(ctx, t.pod(ctx, nil), nil, "run", "--ignore=TERM")
	t.sleep(ctx, 300*time.Millisecond)
	long, cancel := context.WithCancel(ctx)
	defer cancel()
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// The long one is on a goroutine of its own, and its result does not matter.
		_, err = t.rt.StopContainer(long, &runtimeapi.StopContainerRequest{ContainerId: c.id, Timeout: 60})
	}()
	t.sleep(ctx, 500*time.Millisecond)
	took, s := t.stopped(ctx, c.id, 1)
	if took > 20*time.Second || s.ExitCode != 137 {
		t.Errorf("a stop with a timeout of 1 s beside one of 60 s took %v, and the exit code is %d", took, s.ExitCode)
	}
	cancel()
	<-ended
	_ = err // whether the long one was cancelled or returned is all one
}
