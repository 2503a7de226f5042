package apiserver

import (
	"context"
	"slices"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// What a kubelet asks for at each resync of a pod (claims, volumes, drivers) is as it was told,
// nearly always. So the server keeps who asked for an object, and tells them when it changes
// or when requests of nodes may go wrong: as long as a client knows an answer to be true, its
// kubelet need not ask again.

// subject is an object that clients ask for.
type subject struct {
	kind            Kind
	namespace, name string
}

// askers are the clients that know what they were told of objects to be true. It belongs to the
// server's loop.
type askers struct {
	s  *Server
	of map[subject][]*peer
	on bool // the store's changes are listened to
}

// ClaimStillTrue, VolumeStillTrue and DriverStillTrue report whether the API would answer as it
// did last when the object was asked for. They are for use on the node's loop.
func (c *Client) ClaimStillTrue(namespace, name string) bool {
	return c.stillTrue(KindPersistentVolumeClaim, namespace, name)
}

// VolumeStillTrue is ClaimStillTrue of a PersistentVolume.
func (c *Client) VolumeStillTrue(name string) bool {
	return c.stillTrue(KindPersistentVolume, "", name)
}

// DriverStillTrue is ClaimStillTrue of a CSIDriver.
func (c *Client) DriverStillTrue(name string) bool { return c.stillTrue(KindCSIDriver, "", name) }

// Untold grows when one of these may have become false.
func (c *Client) Untold() *loop.Version { return &c.untold }

func (c *Client) stillTrue(kind Kind, namespace, name string) bool {
	_, ok := c.told[subject{kind, namespace, name}]
	return ok
}

// known is an answer, and whether the client is told when it is true no more.
type known[T any] struct {
	v    T
	told bool
}

// callKnown is call for an object that the client may be told of.
func callKnown[T any](ctx context.Context, c *Client, r wire.Request, x subject, get func(s *store.Store) (T, error)) (T, error) {
	a, err := call(ctx, c, r, func(s *store.Store, _ time.Time) (known[T], error) {
		v, err := get(s)
		return known[T]{v, err == nil && c.srv.askers.note(c.peer, x)}, err
	})
	if a.told {
		c.know(x)
	} else if c.stillTrue(x.kind, x.namespace, x.name) {
		delete(c.told, x)
		c.untold.Grow()
	}
	return a.v, err
}

// know notes what a client was told, on its loop.
func (c *Client) know(x subject) {
	if c.told == nil {
		c.told = map[subject]struct{}{}
	}
	c.told[x] = struct{}{}
}

// note keeps who asked for an object, on the server's loop. It reports whether the client is
// told of changes: not while requests may go wrong, as those of a node whose certificate ends, or cost something.
func (a *askers) note(p *peer, x subject) bool {
	s := a.s
	if s.opts.Load != nil || s.faults.Any() || p.shows != nil || !s.l.Elides() {
		return false
	}
	if !a.on {
		a.on, a.of = true, map[subject][]*peer{}
		s.OnChange(func(ch Change) { a.untold(subject{ch.Kind, ch.New.GetNamespace(), ch.New.GetName()}) }, KindPersistentVolumeClaim, KindPersistentVolume, KindCSIDriver)
	}
	if !slices.Contains(a.of[x], p) {
		a.of[x] = append(a.of[x], p)
	}
	return true
}

// untold has clients no longer rely on what they know of an object. The message comes after
// answers that were given before.
func (a *askers) untold(x subject) {
	list, ok := a.of[x]
	if !ok {
		return
	}
	delete(a.of, x)
	for _, p := range list {
		a.s.reply(p, a.s.opts.LatencyMax, func() {
			delete(p.c.told, x)
			p.c.untold.Grow()
		})
	}
}

// allUntold has clients rely on nothing: requests may go wrong from now on.
func (a *askers) allUntold() {
	if len(a.of) == 0 {
		return
	}
	clear(a.of)
	for _, p := range a.s.watches.all {
		a.s.reply(p, a.s.opts.LatencyMax, func() {
			clear(p.c.told)
			p.c.untold.Grow()
		})
	}
}
