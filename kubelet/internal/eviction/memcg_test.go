package eviction

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// kernel notes what it is to tell of.
type kernel struct {
	registered []string
	open       int
	fn         func()
}

func (k *kernel) NotifyMemory(cgroup string, level int64, fn func()) (func(), error) {
	k.registered = append(k.registered, fmt.Sprintf("%s %dMi", cgroup, level/mi))
	k.open++
	k.fn = fn
	return func() { k.open-- }, nil
}

// TestMemcg: for each threshold on memory the kernel tells at the usage at which
// it is met, and then a pass is made at once.
func TestMemcg(t *testing.T) {
	k := &kernel{}
	c := hard("memory.available", "100Mi")
	c.Allocatable, c.MemcgNotification = true, true
	n := newMachine(t, c, func(_ *machine, o *Options) { o.Memcg = k })
	u := n.add(pod("a"), use{memory: mi})
	n.run(5 * time.Second)
	// 5 MiB of the usage could be dropped.
	if want := []string{"/ 8097Mi", "/kubepods 7073Mi"}; !slices.Equal(k.registered, want) {
		t.Errorf("registered %q", k.registered)
	}
	n.run(60 * time.Second)
	if k.open != 2 {
		t.Errorf("%d notifiers", k.open)
	}
	u.memory = 8 * gi
	n.run(3 * time.Second)
	k.fn()
	n.run(time.Second)
	if got := n.kills(); !slices.Equal(got, []string{"68s a"}) {
		t.Errorf("killed %q", got)
	}
	off := &kernel{}
	c.MemcgNotification = false
	newMachine(t, c, func(_ *machine, o *Options) { o.Memcg = off }).run(time.Minute)
	if len(off.registered) > 0 {
		t.Errorf("registered %q", off.registered)
	}
}
