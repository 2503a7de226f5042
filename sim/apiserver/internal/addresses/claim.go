package addresses

import (
	"errors"
	"fmt"
	"net/netip"
)

// claim is what one write of a service takes.
type claim struct {
	*Pool
	// dry takes nothing: what is drawn is a number that is as good as any, since
	// nobody will use it.
	dry   bool
	taken map[int32]bool // ports, by this write
	last  int32          // the highest of them
}

func (p *Pool) claim(dry bool) *claim { return &claim{Pool: p, dry: dry, taken: map[int32]bool{}} }

var (
	errIPTaken      = errors.New("provided IP is already allocated")
	errOtherNetwork = errors.New("the provided network does not match the current range")
	errPortTaken    = errors.New("provided port is already allocated")
	errFull         = errors.New("range is full")
)

// takeIP takes an address that was asked for. A dry run doesn't ask whether another
// service has it.
func (c *claim) takeIP(a netip.Addr) error {
	switch {
	case !c.holds(a) && c.dry:
		return fmt.Errorf("the provided IP (%v) is not in the valid range. The range of valid IPs is %s", a, c.prefix)
	case !c.holds(a):
		return errOtherNetwork
	case c.ips[a] && !c.dry:
		return errIPTaken
	}
	return nil
}

// drawIP takes any address.
func (c *claim) drawIP() (netip.Addr, error) {
	if c.dry {
		return c.prefix.Addr(), nil
	}
	n, ok := c.draw("cluster IP", c.ipCount(), lowIPs, func(n int) bool { return !c.ips[c.ip(n)] })
	if !ok {
		return netip.Addr{}, errFull
	}
	return c.ip(n), nil
}

// takePort takes a port that was asked for. A dry run doesn't ask whether it is in the
// range.
func (c *claim) takePort(n int32) error {
	switch {
	case !c.dry && (n < firstPort || n > lastPort):
		return errors.New("provided port is not in the valid range. The range of valid ports is " + portsRange)
	case c.ports[n] || c.taken[n]:
		return errPortTaken
	}
	c.took(n)
	return nil
}

// drawPort takes any port.
func (c *claim) drawPort() (int32, error) {
	if c.dry {
		c.took(max(c.last, lastPort+1) + 1)
		return c.last, nil
	}
	k, ok := c.draw("node port", lastPort-firstPort+1, lowPorts, func(k int) bool {
		n := firstPort + int32(k)
		return !c.ports[n] && !c.taken[n]
	})
	if !ok {
		return 0, errFull
	}
	c.took(firstPort + int32(k))
	return firstPort + int32(k), nil
}

func (c *claim) took(n int32) {
	c.taken[n] = true
	c.last = max(c.last, n)
}
