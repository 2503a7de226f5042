package controlplane

import (
	"testing"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// TestElectionIsItsManagers has a manager notice that the API is gone and be
// replaced before it can exit: its election leaves the next manager alone.
func TestElectionIsItsManagers(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		l := loop.New(loop.Options{Name: "api", Seed: 1})
		t.Cleanup(l.Close)
		srv := apiserver.New(apiserver.Options{Loop: l})
		c := New(srv, Options{Disable: []string{"*"}})
		first := c.running[ControllerManager].group
		end := srv.AddFault(apiserver.Fault{Refuse: true})
		if !c.leaderElection(first).Cut() {
			t.Fatal("the API can be reached")
		}
		if replaced {
			c.Stop(ControllerManager)
			c.Start(ControllerManager)
		}
		second := c.running[ControllerManager].group
		if err := l.RunUntil(l.Now().Add(controller.RenewDeadline + time.Second)); err != nil {
			t.Fatal(err)
		}
		end()
		if err := l.RunUntil(l.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if !first.Dead() || second.Dead() == replaced {
			t.Errorf("replaced %t: the first manager is dead: %t, the second: %t", replaced, first.Dead(), second.Dead())
		}
		if len(c.Parts()) != 0 {
			t.Errorf("there are %d parts", len(c.Parts()))
		}
	}
}
