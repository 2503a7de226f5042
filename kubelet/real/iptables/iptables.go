//go:build linux

// Package iptables makes the chains that upstream's kubelet makes for the benefit of
// others (pkg/kubelet/kubelet_network_linux.go): one by which CNI plugins and
// kube-proxy see which iptables the machine uses, and one that protects services of
// the machine that listen on 127.0.0.1. The kubelet itself needs none of them.
package iptables

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coreos/go-iptables/iptables"
)

// The chains, by upstream's names.
const (
	hintChain     = "KUBE-IPTABLES-HINT"
	firewallChain = "KUBE-FIREWALL"
	canaryChain   = "KUBE-KUBELET-CANARY"
)

// The tables. mangle is commonly the emptiest, so the canary is looked for there.
const (
	mangle = "mangle"
	nat    = "nat"
	filter = "filter"
)

const (
	// lockWait is how long iptables waits for its lock, in seconds.
	lockWait = 5
	// Exit codes of iptables.
	exitOther    = 1 // a chain that exists, or does not
	exitResource = 4 // such as a lock that somebody else holds
)

// tables are those of one family of addresses, as go-iptables has them.
type tables interface {
	ChainExists(table, chain string) (bool, error)
	NewChain(table, chain string) error
	InsertUnique(table, chain string, pos int, rule ...string) error
	AppendUnique(table, chain string, rule ...string) error
}

var _ tables = (*iptables.IPTables)(nil)

// family keeps the chains of one family.
type family struct {
	tables
	protocol string
	log      func(format string, args ...any)
	// period is how often the canary is looked for; flush and flushed are how often, and
	// for how long, the others are once it is gone.
	period, flush, flushed time.Duration
}

// Keep makes the chains, and makes them again whenever somebody flushes the tables,
// until ctx ends. They stay then. A machine without iptables, or a kubelet without
// the right to it, gets a line in the log and nothing else. log is called from any
// goroutine.
func Keep(ctx context.Context, log func(format string, args ...any)) {
	keep(ctx, family{log: log, period: time.Minute, flush: 100 * time.Millisecond, flushed: 5 * time.Second})
}

// keep is Keep with another's periods.
func keep(ctx context.Context, like family) {
	var wg sync.WaitGroup
	defer wg.Wait()
	found := false
	for protocol, of := range map[string]iptables.Protocol{"IPv4": iptables.ProtocolIPv4, "IPv6": iptables.ProtocolIPv6} {
		t, err := iptables.New(iptables.IPFamily(of), iptables.Timeout(lockWait))
		if err != nil {
			continue
		}
		// What every kernel has that has the family's tables.
		if ok, err := t.ChainExists(nat, "POSTROUTING"); !ok || err != nil {
			continue
		}
		found = true
		f := like
		f.tables, f.protocol = t, protocol
		wg.Go(func() { f.keep(ctx) })
	}
	if !found {
		// Not an error: where there is nftables only, nobody needs the chains.
		like.log("No iptables support on this system; not creating the %s chain", hintChain)
	}
}

// keep does so for one family.
func (f *family) keep(ctx context.Context) {
	if err := f.sync(); err != nil {
		f.log("%v", err)
		f.log("Failed to initialize iptables rules; some functionality may be missing. protocol=%q", f.protocol)
		return
	}
	f.log("Initialized iptables rules. protocol=%q", f.protocol)
	for f.setCanaries(ctx) && f.untilFlushed(ctx) {
		f.log("Reloading after iptables flush protocol=%q", f.protocol)
		if err := f.sync(); err != nil {
			f.log("%v", err)
		}
	}
}

// sync makes what is missing.
func (f *family) sync() error {
	if err := f.ensureChain(mangle, hintChain); err != nil {
		return fmt.Errorf("failed to ensure that iptables hint chain exists: %w", err)
	}
	if f.protocol == "IPv6" { // ::1 has no such trouble
		return nil
	}
	if err := f.ensureChain(filter, firewallChain); err != nil {
		return fmt.Errorf("failed to ensure that filter table %s chain exists: %w", firewallChain, err)
	}
	for _, chain := range [...]string{"OUTPUT", "INPUT"} {
		if err := f.InsertUnique(filter, chain, 1, "-j", firewallChain); err != nil {
			return fmt.Errorf("failed to ensure that %s chain jumps to %s: %w", chain, firewallChain, err)
		}
	}
	// Kube-proxy's route_localnet would let packets from outside in to 127.0.0.1. It makes
	// the same rule, by the same words, and neither makes the other's again.
	if err := f.AppendUnique(filter, firewallChain,
		"-m", "comment", "--comment", "block incoming localnet connections",
		"--dst", "127.0.0.0/8", "!", "--src", "127.0.0.0/8",
		"-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT", "-j", "DROP"); err != nil {
		return fmt.Errorf("failed to ensure rule to drop invalid localhost packets in filter table %s chain: %w", firewallChain, err)
	}
	return nil
}

// ensureChain makes a chain, unless it is there.
func (f *family) ensureChain(table, chain string) error {
	if err := f.NewChain(table, chain); err != nil && exitStatus(err) != exitOther {
		return fmt.Errorf("error creating chain %q: %w", chain, err)
	}
	return nil
}

// setCanaries makes chains whose loss shows that a table was flushed. It tries until
// it can, and returns false if ctx ends before.
func (f *family) setCanaries(ctx context.Context) bool {
	try := func() bool {
		for _, table := range [...]string{mangle, nat, filter} {
			if err := f.ensureChain(table, canaryChain); err != nil {
				f.log("Could not set up iptables canary table=%q chain=%q: %v", table, canaryChain, err)
				return false
			}
		}
		return true
	}
	return try() || poll(ctx, f.period, try)
}

// untilFlushed waits until somebody has flushed the tables, or ctx ends: false.
func (f *family) untilFlushed(ctx context.Context) bool {
	if !poll(ctx, f.period, func() bool { return f.gone(mangle) }) {
		return false
	}
	// A tool may be at it: what is made now it would take away.
	wait, cancel := context.WithTimeout(ctx, f.flushed)
	defer cancel()
	others := func() bool { return f.gone(nat) && f.gone(filter) }
	if !others() && !poll(wait, f.flush, others) && ctx.Err() == nil {
		f.log("Inconsistent iptables state detected protocol=%q", f.protocol)
	}
	return ctx.Err() == nil
}

// gone reports whether a table has lost its canary. While iptables can't tell, it has not.
func (f *family) gone(table string) bool {
	exists, err := f.ChainExists(table, canaryChain)
	return !exists && exitStatus(err) != exitResource
}

// exitStatus is the exit code that an error of iptables tells; 0: none.
func exitStatus(err error) int {
	var e interface{ ExitStatus() int }
	if errors.As(err, &e) {
		return e.ExitStatus()
	}
	return 0
}

// poll asks each period whether something is so, until it is; false: ctx ended before.
func poll(ctx context.Context, period time.Duration, done func() bool) bool {
	t := time.NewTicker(period)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-t.C:
		}
		if done() {
			return true
		}
	}
}
