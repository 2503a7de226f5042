//go:build linux

package plugins

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	server "github.com/drydock-sim/drydock/kubelet/apis/podresources"
)

// resources are two CPUs, which each container has for itself.
type resources struct{}

func (resources) RemoveStale() {}

func (resources) Devices(types.UID, string) []*podresources.ContainerDevices { return nil }

func (resources) Healthy() []*podresources.ContainerDevices { return nil }

func (resources) ExclusiveCPUs(types.UID, string) []int64 { return []int64{2, 3} }

func (resources) AllocatableCPUs() []int64 { return []int64{2, 3} }

func (resources) Memory(types.UID, string) []*podresources.ContainerMemory { return nil }

func (resources) AllocatableMemory() []*podresources.ContainerMemory { return nil }

// TestPodResources asks a kubelet that starts, one that runs and one that has ended, on the socket that an
// earlier one has left.
func TestPodResources(t *testing.T) {
	root := t.TempDir()
	socket := filepath.Join(root, "pod-resources", "kubelet.sock")
	_, g := onLoop(t, func(*loop.Group, func(string, ...any)) {})
	var kubelet *server.Server
	begin := func() (*PodResources, error) {
		return ServePodResources(g, root, func() *server.Server { return kubelet }, t.Logf)
	}
	if _, err := begin(); err == nil || !strings.HasPrefix(err.Error(), "serve pod resources: listen unix "+socket) {
		t.Errorf("without a directory: %v", err)
	}
	if err := os.Mkdir(filepath.Dir(socket), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c, ctx := podresources.NewPodResourcesListerClient(conn), t.Context()
	unavailable := func(want string) {
		t.Helper()
		_, err := c.List(ctx, &podresources.ListPodResourcesRequest{})
		if status.Code(err) != codes.Unavailable || status.Convert(err).Message() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	unavailable("the kubelet is starting")
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main"}}}}
	g.Loop().Post(func() {
		kubelet = &server.Server{ActivePods: func() []*v1.Pod { return []*v1.Pod{pod} }, Devices: resources{}, CPUs: resources{}, Memory: resources{}}
	})
	const want = `name:"p" namespace:"default" containers:{name:"main" cpu_ids:2 cpu_ids:3}`
	plain := func(r *podresources.PodResources) string { return strings.ReplaceAll(r.String(), "  ", " ") }
	if all, err := c.List(ctx, &podresources.ListPodResourcesRequest{}); err != nil || len(all.PodResources) != 1 || plain(all.PodResources[0]) != want {
		t.Errorf("list: %v, %v", all, err)
	}
	if one, err := c.Get(ctx, &podresources.GetPodResourcesRequest{PodNamespace: "default", PodName: "p"}); err != nil || plain(one.PodResources) != want {
		t.Errorf("get: %v, %v", one, err)
	}
	if _, err := c.Get(ctx, &podresources.GetPodResourcesRequest{PodNamespace: "default", PodName: "q"}); err == nil || !strings.HasSuffix(err.Error(), "pod q in namespace default not found") {
		t.Errorf("get of none: %v", err)
	}
	if all, err := c.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{}); err != nil || len(all.CpuIds) != 2 {
		t.Errorf("allocatable: %v, %v", all, err)
	}
	g.Loop().Post(g.Kill)
	unavailable("the kubelet has ended")
}
