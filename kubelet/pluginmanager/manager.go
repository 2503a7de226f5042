package pluginmanager

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Times of upstream's plugin_manager.go, operation_generator.go and exponential_backoff.go.
const (
	loopPeriod     = time.Second
	infoTimeout    = time.Second
	notifyTimeout  = 5 * time.Second
	backoffInitial = 500 * time.Millisecond
	backoffMax     = 2*time.Minute + 2*time.Second
)

// Handler is who uses plugins of a type. ValidatePlugin never waits, the others may.
type Handler interface {
	// ValidatePlugin refuses a plugin by the versions of its type's API that it knows.
	ValidatePlugin(name, endpoint string, versions []string) error
	// RegisterPlugin takes a plugin in. One that fails is tried again, with growing pauses.
	RegisterPlugin(ctx context.Context, name, endpoint string, versions []string) error
	// DeRegisterPlugin is called once the plugin's socket has gone, or is a new one. If
	// the plugin goes while RegisterPlugin waits, that comes to its end first.
	DeRegisterPlugin(ctx context.Context, name, endpoint string)
}

// Dir is the registration directory, below the kubelet's root directory.
const Dir = "plugins_registry"

// Conn is a connection to what listens on a socket, for clients of gRPC services as they
// are generated. A call waits in the task of who calls. In a simulation messages are
// handed over without a socket.
type Conn interface {
	grpc.ClientConnInterface
	Close() error
}

// Sockets are those of a node's plugins.
type Sockets interface {
	// Watch tells of the sockets in a directory by their paths: of those that are there,
	// and from now on of each that is made or removed. Its functions are called on the
	// kubelet's loop.
	Watch(dir string, made, removed func(socket string)) error
	// Dial connects to a socket; an error if nobody listens there.
	Dial(ctx context.Context, socket string) (Conn, error)
}

// Options are what a Manager is made of.
type Options struct {
	Group   *loop.Group
	Sockets Sockets
	// Dir is the registration directory.
	Dir string
	Log func(format string, args ...any)
}

// Manager is a node's plugin manager.
type Manager struct {
	o        Options
	l        *loop.Loop
	handlers map[string]Handler
	// sockets in the order in which they came.
	sockets []*socket
	start   int64 // of the passes, in ns since the Unix epoch
	next    int64 // the pass that is set; 0: none is
}

// socket is what is known of one in the registry.
type socket struct {
	path string
	// made counts how often a socket of that path was made; 0: there is none now.
	made, count int
	// registered is the plugin that was taken in, with the socket that it had.
	registered *registered
	busy       bool // an operation runs
	// failed is when an operation failed, wait for how long none begins.
	failed time.Time
	wait   time.Duration
}

type registered struct {
	made           int
	handler        Handler
	name, endpoint string
}

// New returns a Manager that does nothing until Start.
func New(o Options) *Manager {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	return &Manager{o: o, l: o.Group.Loop(), handlers: map[string]Handler{}}
}

// AddHandler has plugins of a type (CSIPlugin, DRAPlugin of pluginregistration/v1) handed
// to h. It is for use before Start.
func (m *Manager) AddHandler(kind string, h Handler) { m.handlers[kind] = h }

// Start begins with the sockets that are there.
func (m *Manager) Start() {
	m.start = m.l.UnixNano()
	if err := m.o.Sockets.Watch(m.o.Dir, m.made, m.removed); err != nil {
		m.o.Log("The desired_state_of_world populator failed to start: %v", err)
	}
}

func (m *Manager) made(path string) {
	i := slices.IndexFunc(m.sockets, func(s *socket) bool { return s.path == path })
	if i < 0 {
		i = len(m.sockets)
		m.sockets = append(m.sockets, &socket{path: path})
	}
	s := m.sockets[i]
	s.count++
	s.made = s.count
	m.wake(0)
}

func (m *Manager) removed(path string) {
	for _, s := range m.sockets {
		if s.path == path {
			s.made = 0
			m.wake(0)
		}
	}
}

// wake has the first pass that is at least after away be held.
func (m *Manager) wake(after time.Duration) {
	at := m.l.UnixNano() + int64(after)
	at = m.start + (at-m.start+int64(loopPeriod)-1)/int64(loopPeriod)*int64(loopPeriod)
	if m.next != 0 && m.next <= at {
		return
	}
	m.next = at
	m.o.Group.At(time.Unix(0, at), func() {
		if m.next == at { // else an earlier one was set meanwhile
			m.next = 0
			m.reconcile()
		}
	})
}

// reconcile is one pass: plugins that are gone, or whose socket is a new one, are let go
// of; sockets without a plugin are asked (reconciler/reconciler.go).
func (m *Manager) reconcile() {
	m.sockets = slices.DeleteFunc(m.sockets, func(s *socket) bool { return s.made == 0 && s.registered == nil && !s.busy })
	for _, s := range m.sockets {
		switch left := s.wait - m.l.Since(s.failed); {
		case s.busy, s.registered != nil && s.registered.made == s.made:
		case s.wait > 0 && left >= 0:
			m.wake(left + 1)
		case s.registered != nil:
			m.run(s, "unregister plugin", m.unregister)
		case s.made != 0:
			m.run(s, "register plugin", m.register)
		}
	}
}

// run runs an operation, one at a time for a socket. After one that failed there is a
// pause, which doubles (pkg/util/goroutinemap).
func (m *Manager) run(s *socket, what string, do func(ctx context.Context, s *socket) error) {
	s.busy = true
	m.o.Group.Go(what, func(ctx context.Context) {
		err := do(ctx, s)
		s.busy = false
		if err == nil {
			s.wait = 0
		} else {
			s.failed = m.l.Now()
			s.wait = min(max(2*s.wait, backoffInitial), backoffMax)
			m.o.Log("Operation for %q failed. No retries permitted until %v (durationBeforeRetry %v). Error: %v", s.path, s.failed.Add(s.wait), s.wait, err)
		}
		m.wake(0)
	})
}

func (m *Manager) unregister(ctx context.Context, s *socket) error {
	r := s.registered
	s.registered = nil
	r.handler.DeRegisterPlugin(ctx, r.name, r.endpoint)
	return nil
}
