//go:build linux

package machine

import (
	"net"
	"testing"
)

func TestValidateNodeIP(t *testing.T) {
	interfaces := func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.IPv4(10, 0, 0, 1), Mask: net.CIDRMask(24, 32)}, &net.IPNet{IP: net.ParseIP("fd00::1"), Mask: net.CIDRMask(64, 128)}}, nil
	}
	for ip, want := range map[string]string{
		"10.0.0.1":    "",
		"fd00::1":     "",
		"10.0.0.2":    `node IP: "10.0.0.2" not found in the host's network interfaces`,
		"127.0.0.1":   "nodeIP can't be loopback address",
		"::1":         "nodeIP can't be loopback address",
		"224.0.0.1":   "nodeIP can't be a multicast address",
		"169.254.1.1": "nodeIP can't be a link-local unicast address",
		"fe80::1":     "nodeIP can't be a link-local unicast address",
		"0.0.0.0":     "nodeIP can't be an all zeros address",
		"none":        "nodeIP must be a valid IP address",
	} {
		err := validateNodeIP(net.ParseIP(ip), interfaces)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v, want %q", ip, err, want)
		}
	}
}
