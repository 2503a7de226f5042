package lifecycle

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/accounts"
	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/disk"
	"github.com/drydock-sim/drydock/fakecri/internal/hostfiles"
	"github.com/drydock-sim/drydock/fakecri/internal/images"
	"github.com/drydock-sim/drydock/fakecri/internal/podkernel"
	"github.com/drydock-sim/drydock/fakecri/internal/podnet"
	"github.com/drydock-sim/drydock/fakecri/internal/process"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/loop"
)

// Machine takes sandboxes and containers through their states. Its fields are parts of the same
// runtime, which sets them once.
type Machine struct {
	Loop *loop.Loop
	// NoUserNamespaces has requests for them refused; Handlers are the runtime handlers that a
	// RuntimeClass may name.
	NoUserNamespaces bool
	Handlers         []*runtimeapi.RuntimeHandler
	// CDI is the environment that a CDI device gives a container, by the device's name; nil:
	// see injectCDI.
	CDI      map[string][]string
	Calls    *calls.Daemon
	Records  *records.Store
	Images   *images.Store
	Files    *hostfiles.Files
	Layers   *disk.Layers
	Kernel   *podkernel.Node
	Accounts *accounts.Node
	Net      *podnet.Net
	Runner   *process.Runner
	Event    func(kind runtimeapi.ContainerEventType, id string, s *records.Sandbox)
}

// Usual are the names of the handlers that a runtime has if nothing else is said.
var Usual = []string{"runc"}

// usual are their handlers, by NoUserNamespaces: nodes share them.
var usual = map[bool][]*runtimeapi.RuntimeHandler{false: newHandlers(Usual, false), true: newHandlers(Usual, true)}

// HandlersOf are the runtime handlers of those names and the default one. Nobody may
// write to them. The default one has the empty name, as in the CRI's StatusResponse.
func HandlersOf(names []string, noUserNamespaces bool) []*runtimeapi.RuntimeHandler {
	if slices.Equal(names, Usual) {
		return usual[noUserNamespaces]
	}
	return newHandlers(names, noUserNamespaces)
}

// newHandlers makes the handlers; all have the same features.
func newHandlers(names []string, noUserNamespaces bool) (handlers []*runtimeapi.RuntimeHandler) {
	features := &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true, UserNamespaces: !noUserNamespaces}
	for _, h := range append([]string{""}, names...) {
		handlers = append(handlers, &runtimeapi.RuntimeHandler{Name: h, Features: features})
	}
	return handlers
}

// RunSandbox runs what has its configuration and handler only. Timeout -1 says that the call has
// none.
func (r *Machine) RunSandbox(ctx context.Context, by *calls.Caller, s *records.Sandbox) (string, error) {
	md := s.Metadata
	sub := calls.Subject{Namespace: md.GetNamespace(), Pod: md.GetName(), Attempt: md.GetAttempt(), Timeout: -1}
	return by.Act(ctx, calls.RunPodSandbox, &sandboxRun{Acting: calls.Acting{Subject: sub}, r: r, s: s})
}

// checkHandler refuses a runtime handler that is not configured. A pod with an unknown
// RuntimeClass handler fails here, with containerd's words.
func (r *Machine) checkHandler(name string) error {
	if slices.ContainsFunc(r.Handlers, func(h *runtimeapi.RuntimeHandler) bool { return h.Name == name }) {
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "failed to get sandbox runtime: no runtime for %q is configured", name)
}
