package status

import "github.com/drydock-sim/drydock/ground/loop"

// elide leaves out full batches while no entry is marked: such a batch sends
// nothing.
func (m *Manager) elide() {
	m.full.Elide(&loop.Elision{
		Of: []*loop.Version{&m.toSend},
		Idle: func(now int64) int64 {
			if len(m.marked) > 0 {
				return now
			}
			return loop.Forever
		},
	})
	m.full.Settle()
}
