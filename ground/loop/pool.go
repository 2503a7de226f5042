package loop

// What a pool keeps at most of each kind.
const (
	maxPooled   = 2048 // coroutines, and what calls and tasks are made of
	maxMessages = 4096
)

// pool is what loops use again and again: idle coroutines, whose stacks have
// grown already, and what would else be garbage of each task, call and message.
// It belongs to whoever runs loops: a loop that runs alone, or one of an engine's
// workers, which lends it to the loop that it runs. Which of its things one gets
// can't be observed.
type pool struct {
	coros    spare[coro]
	messages spare[Timer]
	tasks    spare[Task]
	calls    spare[stepped]
	timeouts spare[timed]
}

// spare is a stack of things to be used again.
type spare[T any] struct{ list []*T }

// take returns nil if there is none.
func (s *spare[T]) take() *T {
	n := len(s.list)
	if n == 0 {
		return nil
	}
	v := s.list[n-1]
	s.list[n-1] = nil
	s.list = s.list[:n-1]
	return v
}

// put reports whether there was room, up to a limit.
func (s *spare[T]) put(v *T, limit int) bool {
	if len(s.list) >= limit {
		return false
	}
	s.list = append(s.list, v)
	return true
}

func (p *pool) takeMessage() *Timer {
	if t := p.messages.take(); t != nil {
		return t
	}
	return &Timer{idx: -1, pooled: true, name: "message"}
}

func (p *pool) putMessage(t *Timer) {
	t.g = nil
	p.messages.put(t, maxMessages)
}

func (p *pool) putCoro(c *coro) {
	if !p.coros.put(c, maxPooled) {
		c.stop()
	}
}

func (p *pool) close() {
	for _, c := range p.coros.list {
		c.stop()
	}
	*p = pool{}
}
