//go:build linux

package machine

import (
	"context"
	"errors"
	"fmt"
	"net"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet"
)

// Addresses finds this machine's addresses, each time anew: interfaces come and go,
// and DNS changes. Its methods wait in tasks of a loop.
type Addresses struct{}

var _ kubelet.AddressFinder = Addresses{}

// ValidateNodeIP refuses an address that no other machine could reach this one at, and
// one that no interface has (pkg/kubelet/kubelet_node_status.go, validateNodeIP).
func (Addresses) ValidateNodeIP(ctx context.Context, ip net.IP) error {
	_, err := loop.Await(ctx, func(context.Context) (struct{}, error) { return struct{}{}, validateNodeIP(ip, net.InterfaceAddrs) })
	return err
}

func validateNodeIP(ip net.IP, interfaces func() ([]net.Addr, error)) error {
	switch {
	case ip.To16() == nil:
		return errors.New("nodeIP must be a valid IP address")
	case ip.IsLoopback():
		return errors.New("nodeIP can't be loopback address")
	case ip.IsMulticast():
		return errors.New("nodeIP can't be a multicast address")
	case ip.IsLinkLocalUnicast():
		return errors.New("nodeIP can't be a link-local unicast address")
	case ip.IsUnspecified():
		return errors.New("nodeIP can't be an all zeros address")
	}
	list, err := interfaces()
	if err != nil {
		return fmt.Errorf("addresses of the interfaces: %w", err)
	}
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return nil
		}
	}
	return fmt.Errorf("node IP: %q not found in the host's network interfaces", ip)
}

// LookupIP asks the system's resolver.
func (Addresses) LookupIP(ctx context.Context, host string) []net.IP {
	ips, _ := loop.Await(ctx, func(ctx context.Context) ([]net.IP, error) { return net.DefaultResolver.LookupIP(ctx, "ip", host) })
	return ips
}

// DefaultIP goes by the routes. A machine without a default route has none: an error.
func (Addresses) DefaultIP(ctx context.Context, preferred net.IP) (net.IP, error) {
	return loop.Await(ctx, func(context.Context) (net.IP, error) { return utilnet.ResolveBindAddress(preferred) })
}

// defaultAddress is what DefaultIP finds; without it that of loopback, for a kubelet
// that has no cluster.
func defaultAddress(preferred net.IP) string {
	if ip, err := utilnet.ResolveBindAddress(preferred); err == nil {
		return ip.String()
	}
	return "127.0.0.1"
}
