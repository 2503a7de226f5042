//go:build linux

package conformance

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/actor"
)

// namespace is where the pods of direct checks are.
const namespace = "drydock-conformance"

// testImageName is the image that checks use unless images are what they are
// about. The actor answers to all that checks ask for, see package actor.
const testImageName = actor.Repository + ":1"

// pod is a sandbox that a check made. config is as it was sent: calls that create
// containers repeat it.
type pod struct {
	id     string
	config *runtimeapi.PodSandboxConfig
}

// podConfig is the configuration of a sandbox that no other check has. It is what
// a kubelet would send for a pod without wishes, with the run's labels and a
// directory for logs. Odd values of labels and annotations show whether they are kept; attempt 2,
// whether it is looked at.
func (t *T) podConfig() *runtimeapi.PodSandboxConfig {
	t.n++
	uid := fmt.Sprintf("%s-%d", t.id, t.n)
	return &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "check-" + uid, Uid: "uid-" + uid, Namespace: namespace, Attempt: 2},
		Hostname:     "check",
		LogDirectory: t.dir(),
		Labels:       t.scope.with(map[string]string{"check": uid, "a": "1"}),
		Annotations:  map[string]string{"note": "of " + uid, "drydock.dev/other": `{"x":"ü"}`},
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER},
		}},
	}
}

// pod runs a sandbox; edit, if not nil, may change its configuration. It needs no cleanup of its
// own: the recorder has its id.
func (t *T) pod(ctx context.Context, edit func(c *runtimeapi.PodSandboxConfig)) *pod {
	c := t.podConfig()
	if edit != nil {
		edit(c)
	}
	r, err := t.rt.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: c})
	t.must(err, "RunPodSandbox")
	if r.PodSandboxId == "" {
		t.Fatalf("RunPodSandbox returned no id")
	}
	return &pod{r.PodSandboxId, c}
}

// containerConfig is the configuration of a container that runs the actor with
// the arguments. The image is pulled if it is not there, and named by its ID, as
// kubelets do.
func (t *T) containerConfig(ctx context.Context, args ...string) *runtimeapi.ContainerConfig {
	t.n++
	name := fmt.Sprintf("c%d", t.n)
	ref, id := t.im.get(ctx, testImageName)
	return &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: name, Attempt: 3},
		Image:       &runtimeapi.ImageSpec{Image: id, UserSpecifiedImage: ref},
		Command:     []string{actor.Program},
		Args:        args,
		Labels:      t.scope.with(map[string]string{"container": name, "b": "2"}),
		Annotations: map[string]string{"note": "of " + name},
		LogPath:     name + ".log",
		Linux:       &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{CpuShares: 100}, SecurityContext: &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}}},
	}
}

// container is one that a check made. config is as it was sent, with the name and
// attempt that the next one counts from.
type container struct {
	id     string
	pod    *pod
	config *runtimeapi.ContainerConfig
}

// log is where its log is.
func (c *container) log() string { return filepath.Join(c.pod.config.LogDirectory, c.config.LogPath) }

// create makes a container that runs the actor with the arguments. The sandbox's configuration is
// sent again, as kubelets do.
func (t *T) create(ctx context.Context, p *pod, edit func(c *runtimeapi.ContainerConfig), args ...string) *container {
	c := t.containerConfig(ctx, args...)
	if edit != nil {
		edit(c)
	}
	r, err := t.rt.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: p.id, Config: c, SandboxConfig: p.config})
	t.must(err, "CreateContainer")
	if r.ContainerId == "" {
		t.Fatalf("CreateContainer returned no id")
	}
	return &container{r.ContainerId, p, c}
}

// start is create, and starts the container. Started is all that is promised:
// what the process does comes later, see eventually.
func (t *T) start(ctx context.Context, p *pod, edit func(c *runtimeapi.ContainerConfig), args ...string) *container {
	c := t.create(ctx, p, edit, args...)
	t.startIt(ctx, c)
	return c
}

// startIt is StartContainer.
func (t *T) startIt(ctx context.Context, c *container) {
	_, err := t.rt.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: c.id})
	t.must(err, "StartContainer")
}

// running runs a container in a sandbox of its own until it is stopped. "run" alone goes on until
// it is stopped.
func (t *T) running(ctx context.Context) *container { return t.start(ctx, t.pod(ctx, nil), nil, "run") }

// status is ContainerStatus.
func (t *T) status(ctx context.Context, id string) *runtimeapi.ContainerStatus {
	r, err := t.rt.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	t.must(err, "ContainerStatus")
	if r.Status == nil {
		t.Fatalf("ContainerStatus returned no status")
	}
	return r.Status
}

// sandboxStatus is PodSandboxStatus.
func (t *T) sandboxStatus(ctx context.Context, id string) *runtimeapi.PodSandboxStatus {
	r, err := t.rt.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id})
	t.must(err, "PodSandboxStatus")
	if r.Status == nil {
		t.Fatalf("PodSandboxStatus returned no status")
	}
	return r.Status
}

// waitState waits until a container has a state. A minute is far beyond what any
// runtime needs and ends what hangs. The state that came last is in the message.
func (t *T) waitState(ctx context.Context, id string, want runtimeapi.ContainerState) *runtimeapi.ContainerStatus {
	var s *runtimeapi.ContainerStatus
	t.eventually(ctx, time.Minute, func() string {
		if s = t.status(ctx, id); s.State != want {
			return fmt.Sprintf("the container's state is %s, not %s", s.State, want)
		}
		return ""
	})
	return s
}

// exited waits until a container has ended.
func (t *T) exited(ctx context.Context, id string) *runtimeapi.ContainerStatus {
	return t.waitState(ctx, id, runtimeapi.ContainerState_CONTAINER_EXITED)
}

// ran runs the actor to its end and returns how it ended, and what it wrote on
// standard output. It is for checks that ask a container what it sees.
func (t *T) ran(ctx context.Context, p *pod, edit func(c *runtimeapi.ContainerConfig), args ...string) (*runtimeapi.ContainerStatus, string) {
	c := t.start(ctx, p, edit, args...)
	s := t.exited(ctx, c.id)
	return s, t.stdout(ctx, c)
}

// exec runs the actor in a container with ExecSync. Twenty seconds are its limit,
// far beyond what the actor takes. An exit code other than 0 is for the caller to judge.
func (t *T) exec(ctx context.Context, id string, args ...string) *runtimeapi.ExecSyncResponse {
	r, err := t.execErr(ctx, id, args...)
	t.must(err, "ExecSync of %q", args)
	return r
}

// execErr is exec of a call that may fail.
func (t *T) execErr(ctx context.Context, id string, args ...string) (*runtimeapi.ExecSyncResponse, error) {
	return t.rt.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: append([]string{actor.Program}, args...), Timeout: 20})
}

// says is exec of a command that must succeed; it returns what it printed.
func (t *T) says(ctx context.Context, id string, args ...string) string {
	r := t.exec(ctx, id, args...)
	if r.ExitCode != 0 {
		t.Fatalf("%q exited %d: %s%s", args, r.ExitCode, r.Stdout, r.Stderr)
	}
	return strings.TrimSuffix(string(r.Stdout), "\n")
}

// stop is StopContainer.
func (t *T) stop(ctx context.Context, id string, timeout int64) {
	_, err := t.rt.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: timeout})
	t.must(err, "StopContainer")
}

// podIP returns a pod's address.
func (t *T) podIP(ctx context.Context, p *pod) string {
	ip := t.sandboxStatus(ctx, p.id).GetNetwork().GetIp()
	if ip == "" {
		t.Fatalf("the sandbox's status has no network.ip")
	}
	return ip
}

// image pulls a test image, unless this check has it already, and returns its
// reference and its id. Several checks use one image, so only the first pulls it.
func (i testImages) get(ctx context.Context, name string) (ref, id string) {
	ref = i.t.suite.registry.Ref(name)
	if r, err := i.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: ref}}); err == nil && r.GetImage().GetId() != "" {
		return ref, r.Image.Id
	}
	return ref, i.pull(ctx, ref)
}

// pull is PullImage.
func (i testImages) pull(ctx context.Context, ref string) string {
	r, err := i.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: ref}})
	i.t.must(err, "PullImage of %s", ref)
	if r.ImageRef == "" {
		i.t.Fatalf("PullImage of %s returned no image_ref", ref)
	}
	return r.ImageRef
}

// wantCode says that a call has not failed with a code. The check goes on after it, as what
// follows may be of interest.
func (t *T) wantCode(err error, want codes.Code, what string) {
	switch got := status.Code(err); {
	case err == nil:
		t.Errorf("%s succeeded, want %s", what, want)
	case got != want:
		t.Errorf("%s failed with %s, want the code %s", what, describe(err), want)
	}
}

// wantError says that a call that cannot work has worked.
func (t *T) wantError(err error, what string) {
	if err == nil {
		t.Errorf("%s succeeded, want an error", what)
	}
}

// unknownID is an ID that nothing has. It has the form of real ones, or a runtime
// might refuse it for that. 64 hexadecimal digits.
func (t *T) unknownID() string {
	t.n++
	return fmt.Sprintf("%064x", []byte(fmt.Sprintf("%s-%d", t.id, t.n)))[:64]
}
