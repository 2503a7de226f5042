package eviction

import (
	"context"
	"strings"
	"testing"
	"time"
)

// slowMachine takes its time to say how much is below a path.
type slowMachine struct {
	*machine
	waits int
}

func (s *slowMachine) UsageWait(ctx context.Context, name string) (bytes, inodes int64, err error) {
	s.waits++
	err = s.l.Sleep(ctx, 5*time.Second)
	return s.sizes[name], 1, err
}

// TestSlowFiles: where reading a volume takes time, a task does it.
func TestSlowFiles(t *testing.T) {
	n := newMachine(t)
	s := &slowMachine{machine: n}
	n.m.o.FS = s
	n.sizes["/pods/a/volumes/kubernetes.io~empty-dir/d"] = 20 << 20
	n.add(pod("a", emptyDir("5Mi")))
	gone := pod("b", emptyDir("5Mi"))
	n.add(gone)
	n.l.Root().After(62*time.Second, func() { n.m.RemovePod("b") }) // while it is being read
	n.run(100 * time.Second)
	if s.waits == 0 || len(n.log) != 2 || !strings.Contains(n.log[0], "exceeds the limit") {
		t.Errorf("%d waits, %q", s.waits, n.log)
	}
	if n.m.watched["b"] != nil {
		t.Error("a pod that has gone is looked at again")
	}
}
