package runtimeclass

import (
	"context"
	"testing"
	"time"

	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
)

type client struct {
	watches int
	event   func(watch.EventType, *nodev1.RuntimeClass)
}

func (c *client) WatchRuntimeClasses(g *loop.Group, listed func([]*nodev1.RuntimeClass), event func(watch.EventType, *nodev1.RuntimeClass)) func() {
	c.watches++
	c.event = event
	g.After(10*time.Millisecond, func() { listed([]*nodev1.RuntimeClass{class("a", "ha")}) })
	return func() {}
}

func class(name, handler string) *nodev1.RuntimeClass {
	c := &nodev1.RuntimeClass{Handler: handler}
	c.Name = name
	return c
}

func TestLookup(t *testing.T) {
	l := loop.New(loop.Options{Name: "n"})
	defer l.Close()
	g := l.NewGroup("kubelet")
	c := &client{}
	m := New(g, c)
	lookup := func(name string) (out string) {
		task := g.Go("test", func(ctx context.Context) {
			h, err := m.LookupRuntimeHandler(ctx, &name)
			if out = h; err != nil {
				out = err.Error()
			}
		})
		if err := l.RunUntil(l.Now().Add(time.Second)); err != nil || !task.Done() {
			t.Fatal(err, task.Done())
		}
		return out
	}
	if got := lookup(""); got != "" || c.watches != 0 {
		t.Error(got, c.watches)
	}
	if got := lookup("a"); got != "ha" || c.watches != 1 {
		t.Error(got, c.watches)
	}
	if got := lookup("b"); got != `runtimeclass.node.k8s.io "b" not found` {
		t.Error(got)
	}
	c.event(watch.Added, class("b", "hb"))
	c.event(watch.Deleted, class("a", "ha"))
	if got := lookup("b") + " " + lookup("a"); got != `hb runtimeclass.node.k8s.io "a" not found` || c.watches != 1 {
		t.Error(got, c.watches)
	}
}
