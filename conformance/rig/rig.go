//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/actor"
)

// client is a connection to a runtime. It is gRPC without the recorder of the checks, as rig must
// not depend on them.
type client struct {
	runtimeapi.RuntimeServiceClient
	images runtimeapi.ImageServiceClient
	conn   *grpc.ClientConn
}

// dial connects to an endpoint (unix:///run/x.sock) and waits until it answers. ctx bounds the
// wait.
func dial(ctx context.Context, endpoint string) (*client, error) {
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("runtime endpoint %s: %w", endpoint, err)
	}
	c := &client{runtimeapi.NewRuntimeServiceClient(conn), runtimeapi.NewImageServiceClient(conn), conn}
	if _, err := c.Version(ctx, &runtimeapi.VersionRequest{}, grpc.WaitForReady(true)); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("runtime endpoint %s: %w", endpoint, brief(err))
	}
	return c, nil
}

// brief is a gRPC error without the words around its text, on one line.
func brief(err error) error {
	if s, ok := status.FromError(err); ok {
		return errors.New(s.Code().String() + ": " + strings.Join(strings.Fields(s.Message()), " "))
	}
	return err
}

// Probe tries whether a runtime can do what the checks need: it pulls a test
// image by its full reference, runs a pod with it, executes a command in it,
// finds what it has logged and takes it down. The error says what can't be done. The scripts run
// it first, so that a machine that can't run pods is not taken for a runtime that fails.
func Probe(ctx context.Context, endpoint, image string) (err error) {
	c, err := dial(ctx, endpoint)
	if err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }()
	st, err := c.Status(ctx, &runtimeapi.StatusRequest{})
	if err != nil {
		return fmt.Errorf("its status: %w", brief(err))
	}
	for _, cond := range st.GetStatus().GetConditions() {
		if !cond.Status && (cond.Type == "RuntimeReady" || cond.Type == "NetworkReady") {
			return fmt.Errorf("%s is false: %s: %s", cond.Type, cond.Reason, cond.Message)
		}
	}
	spec := &runtimeapi.ImageSpec{Image: image}
	if _, err := c.images.PullImage(ctx, &runtimeapi.PullImageRequest{Image: spec}); err != nil {
		return fmt.Errorf("pull %s: %w", image, brief(err))
	}
	logs, err := os.MkdirTemp("", "drydock-probe-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(logs) }()
	cfg := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "probe", Namespace: "drydock", Uid: filepath.Base(logs)},
		Hostname:     "probe",
		LogDirectory: logs,
		Linux:        &runtimeapi.LinuxPodSandboxConfig{},
	}
	sb, err := c.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: cfg})
	if err != nil {
		return fmt.Errorf("run a pod sandbox: %w", brief(err))
	}
	defer func() {
		if rerr := c.remove(sb.PodSandboxId); err == nil {
			err = rerr
		}
	}()
	return c.probeContainer(ctx, sb.PodSandboxId, cfg, spec)
}

// probeText is what the container logs.
const probeText = "the probe runs"

// probeContainer runs a container in a sandbox and waits for its log: limits and
// scores are set because runtimes in containers often can't. The last wait is for the log, since
// logs need a mount and a file of the machine to work.
func (c *client) probeContainer(ctx context.Context, sb string, cfg *runtimeapi.PodSandboxConfig, spec *runtimeapi.ImageSpec) error {
	ctr, err := c.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: sb, SandboxConfig: cfg, Config: &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "probe"}, Image: spec, Command: []string{actor.Program, "run", "--log=" + probeText}, LogPath: "probe.log",
		Linux: &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{CpuShares: 10, MemoryLimitInBytes: 64 << 20, OomScoreAdj: 999}},
	}})
	if err != nil {
		return fmt.Errorf("create a container: %w", brief(err))
	}
	if _, err := c.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: ctr.ContainerId}); err != nil {
		return fmt.Errorf("start a container: %w", brief(err))
	}
	out, err := c.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: ctr.ContainerId, Cmd: []string{actor.Program, "hostname"}, Timeout: 10})
	switch {
	case err != nil:
		return fmt.Errorf("execute a command: %w", brief(err))
	case out.ExitCode != 0 || string(out.Stdout) != "probe\n":
		return fmt.Errorf("execute a command: it printed %q and exited with %d", out.Stdout, out.ExitCode)
	}
	for {
		data, err := os.ReadFile(filepath.Join(cfg.LogDirectory, "probe.log"))
		if err == nil && strings.Contains(string(data), probeText) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the log of a container: there is nothing in it")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// remove takes a sandbox down.
func (c *client) remove(id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := c.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id}); err != nil {
		return fmt.Errorf("stop a pod sandbox: %w", brief(err))
	}
	if _, err := c.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id}); err != nil {
		return fmt.Errorf("remove a pod sandbox: %w", brief(err))
	}
	return nil
}

// Clear removes every pod of a runtime, whoever made it, and returns how many
// there were. The error joins what could not be removed. It is for machines of one's own: other
// guests' pods go as well.
func Clear(ctx context.Context, endpoint string) (int, error) {
	c, err := dial(ctx, endpoint)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.conn.Close() }()
	list, err := c.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return 0, fmt.Errorf("list pod sandboxes: %w", brief(err))
	}
	var errs []error
	for _, sb := range list.Items {
		if err := c.remove(sb.Id); err != nil {
			errs = append(errs, fmt.Errorf("%s/%s: %w", sb.GetMetadata().GetNamespace(), sb.GetMetadata().GetName(), err))
		}
	}
	return len(list.Items), errors.Join(errs...)
}
