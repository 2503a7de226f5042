//go:build linux

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// Server is a container runtime behind a socket. New makes it and starts its loop, Serve answers,
// Stop ends it. Its methods may be called from any goroutine but the loop's.
type Server struct {
	opts  Options
	loop  *loop.Loop
	group *loop.Group // of the calls' tasks
	rt    *fakecri.Runtime
	// client makes the calls that are tasks, prompt those that are answered
	// in a callback. Both are for use on the loop.
	client     *fakecri.Client
	prompt     *fakecri.Client
	background context.Context // of callbacks

	// Of these, events, faults and lists.items belong to the loop.
	grpc    *grpc.Server
	events  hub
	faults  faultTable
	lists   listCache
	record  *recorder
	panics  atomic.Int64
	calls   atomic.Int64
	running atomic.Int64 // calls
	streams *streamServer
	bridge  *bridge
	logs    *logFiles

	quit    chan struct{} // closed when Stop begins
	ended   chan struct{} // closed when the loop has ended
	cancel  context.CancelFunc
	loopErr error // valid once ended is closed
	stop    sync.Once
}

// New returns a server whose runtime runs already: its daemon is up. Stop must
// be called in the end. The error names the option that is wrong. The order of the parts matters:
// assemble needs the loop, which must not run before they are there.
func New(opts Options) (*Server, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts.setDefaults()
	s := &Server{opts: opts, quit: make(chan struct{}), ended: make(chan struct{})}
	// The loop's name is part of each draw.
	name := cmp.Or(opts.Runtime.Node, "fakecri")
	s.loop = loop.NewReal(loop.Options{Name: name, Seed: opts.Seed, Speed: opts.Speed, OnPanic: s.panicked})
	if err := s.assemble(); err != nil {
		// Ports and files that were opened before the error.
		s.closeParts()
		s.loop.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	// From here on the loop's goroutine is this one: everything else comes by Post.
	go s.runLoop(ctx)
	return s, nil
}

// runLoop runs the loop to its end. What is to be done then is deferred, since a Goexit on the loop,
// such as Fatal of a test, ends this goroutine too.
func (s *Server) runLoop(ctx context.Context) {
	defer close(s.ended)
	defer s.loop.Close()
	s.loopErr = errGoexit
	defer func() { s.loopErr = cmp.Or(s.loop.Err(), s.loopErr) }()
	s.loopErr = s.loop.RunReal(ctx)
}

// assemble makes the runtime and what serves it. The loop doesn't run yet. The order is that of
// their needs: files and streaming are options of the runtime, which must be there before its
// clients, and those before the services.
func (s *Server) assemble() error {
	s.group = s.loop.NewGroup("server")
	ro := s.opts.Runtime
	ro.Loop = s.loop
	if ro.Warn == nil {
		ro.Warn = s.opts.Warn
	}
	s.logs = newLogFiles()
	switch {
	case !s.opts.Isolated:
		s.logs.apply(&ro)
		newHostFS().apply(&ro)
	case ro.FS == nil && ro.Host == nil:
		ro.FS = memfs.New(memfs.Options{Loop: s.loop})
	}
	var err error
	if s.streams, err = newStreaming(s); err != nil {
		return fmt.Errorf("streaming server: %w", err)
	}
	s.streams.apply(&ro)
	s.bridge = newBridge(s)
	if !s.opts.Isolated {
		s.bridge.apply(&ro)
	}
	ro.ImageFilesystem = s.opts.Root
	// A real kubelet's commands are to run, whatever image they are in; images come by base name
	// since nothing is pulled from a registry.
	ro.Interpret, ro.ImagesByBaseName = true, true
	ro.SandboxImage = cmp.Or(ro.SandboxImage, DefaultSandboxImage)
	if err := ro.Validate(); err != nil {
		return err
	}
	s.rt = fakecri.New(ro)
	s.client = s.rt.Client(s.group)
	s.prompt = s.client.Prompt()
	s.background = s.group.Background()
	for _, f := range s.opts.Faults {
		s.addFault(s.rt, f)
	}
	s.events.init(s)
	s.rt.StartDaemon()
	if s.opts.Record != nil {
		s.record = newRecorder(s.opts.Record, s.opts.Warn)
	}
	// With another speed each answer is a translated copy, whose items never come back.
	s.lists.byItem = s.opts.Speed == 1
	s.grpc = s.newGRPC()
	runtimeapi.RegisterRuntimeServiceServer(s.grpc, &runtimeService{s: s})
	runtimeapi.RegisterImageServiceServer(s.grpc, &imageService{s: s})
	return nil
}

// Serve answers calls on lis, which it closes in the end, until Stop; it then
// returns nil. It may be called for several listeners. Errors are the listener's; that of an
// ordinary end is none.
func (s *Server) Serve(lis net.Listener) error {
	err := s.grpc.Serve(lis)
	select {
	case <-s.quit:
		return nil
	default:
	}
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Stop ends the server: calls in flight get up to Options.Grace to end, then
// are cut; the containers end with it. It returns when all is closed, and the
// record, if there is one, is written. A second call waits for the first. The order: no new
// calls, then streams and ports, which need the loop, then the loop, then files.
func (s *Server) Stop() {
	s.stop.Do(func() {
		close(s.quit)
		s.stopGRPC()
		s.streamsClose()
		s.cancel()
		<-s.ended
		s.closeParts()
	})
}

// stopGRPC ends the calls.
func (s *Server) stopGRPC() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.grpc.GracefulStop()
	}()
	t := time.NewTimer(s.opts.Grace)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		// Calls that go on when they are cancelled, such as removals, end too. Killing the group
		// ends their tasks, and each replies errStopping.
		s.loop.Post(s.group.Kill)
		s.grpc.Stop()
		<-done
	}
}

// streamsClose ends what the streaming server serves while the loop still runs.
func (s *Server) streamsClose() {
	if s.streams != nil {
		s.streams.Close()
	}
	if s.bridge != nil {
		s.bridge.Close()
	}
}

// closeParts closes what New opened; the loop has ended, or never ran. quit reports whether Stop
// has closed the streams.
func (s *Server) closeParts() {
	select {
	case <-s.quit:
	default:
		s.streamsClose()
	}
	if s.logs != nil {
		s.logs.Close()
	}
	if s.record != nil {
		s.record.close()
	}
}

// Runtime returns the runtime. It is for use on the loop, by Do.
func (s *Server) Runtime() *fakecri.Runtime { return s.rt }

// Loop returns the loop that the runtime runs on.
func (s *Server) Loop() *loop.Loop { return s.loop }

// errGoexit is why the loop has ended if no task of it was to blame.
var errGoexit = errors.New("a function on the loop called runtime.Goexit")

// errEnded is the error of what needs the loop after its end.
var errEnded = errors.New("the server has stopped")

// Do runs fn on the loop and waits for it. fn must not wait; Do may be called
// from any goroutine but the loop's own. After Stop it returns an error and
// does nothing; if fn panics, that is the error.
func (s *Server) Do(fn func(*fakecri.Runtime)) error {
	// A panic is the caller's error, and the loop goes on.
	done := make(chan error, 1)
	s.loop.Post(func() {
		var err error
		defer func() { done <- err }()
		defer s.recovered("a function on the loop", &err)
		fn(s.rt)
	})
	select {
	case err := <-done:
		return err
	case <-s.ended:
	}
	select {
	case err := <-done:
		return err
	default:
		return errEnded
	}
}

// Done is closed when the loop has ended: by Stop, or because something went
// wrong that Err tells.
func (s *Server) Done() <-chan struct{} { return s.ended }

// Err returns why the loop ended by itself, once it has; nil otherwise.
func (s *Server) Err() error {
	select {
	case <-s.ended:
		return s.loopErr
	default:
		return nil
	}
}

// panicked logs a panic of a task in one line. The task is gone, the loop lives on: one broken
// call must not end all containers.
func (s *Server) panicked(err *loop.PanicError) {
	s.panics.Add(1)
	s.warn("%s", strings.Join(strings.Fields(err.Error()), " "))
	if s.opts.Debug {
		s.warn("%s", err.Stack)
	}
}

// warn says a sentence, if anybody listens.
func (s *Server) warn(format string, args ...any) {
	if s.opts.Warn != nil {
		s.opts.Warn(fmt.Sprintf(format, args...))
	}
}
