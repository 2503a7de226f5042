//go:build linux

package fakecritest_test

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/fakecri/fakecritest"
)

// T stands for the *testing.T that a test is given.
type T struct {
	testing.TB
	cleanups []func()
}

func (t *T) Helper()          {}
func (t *T) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *T) End() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}

// A client of the CRI against a runtime that fails its first call, to see what
// the client makes of it. The server ends with the test.
func ExampleNewServer() {
	t := &T{} // in a test: its *testing.T
	defer t.End()

	srv := fakecritest.NewServer(t)
	srv.FailNext("RunPodSandbox", "Unavailable", "try again")

	client := runtimeapi.NewRuntimeServiceClient(srv.Dial())
	request := &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "1"},
	}}
	for range 2 {
		_, err := client.RunPodSandbox(context.Background(), request)
		fmt.Println(status.Code(err))
	}
	list, err := client.ListPodSandbox(context.Background(), &runtimeapi.ListPodSandboxRequest{})
	fmt.Println(len(list.GetItems()), "sandbox,", err)
	// Output:
	// Unavailable
	// OK
	// 1 sandbox, <nil>
}

// Faults that last are taken back by the function that setting one returns.
func ExampleServer_Fault() {
	t := &T{} // in a test: its *testing.T
	defer t.End()

	srv := fakecritest.NewServer(t)
	client := runtimeapi.NewRuntimeServiceClient(srv.Dial())
	version := func() {
		_, err := client.Version(context.Background(), &runtimeapi.VersionRequest{})
		fmt.Println(status.Code(err))
	}
	mend := srv.Fault(fakecri.Fault{Method: "Version", Error: &fakecri.FaultError{Code: "DeadlineExceeded"}})
	version()
	mend()
	version()
	// Output:
	// DeadlineExceeded
	// OK
}
