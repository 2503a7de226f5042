package applet

import "net"

// Address finds the IP of a host; false if it has none. /etc/hosts is asked first,
// then the name server. It may wait.
func (c *Call) Address(host string) (string, bool) {
	if ip := net.ParseIP(host); ip != nil {
		return ip.String(), true
	}
	return c.P.LookupHost(c.Ctx, host)
}

// Mac derives a hardware address from an IP, as bridges do for pods. 0a:58 is what the CNI
// plugins' bridge and ptp use.
func Mac(ip net.IP) net.HardwareAddr {
	v4 := ip.To4()
	if v4 == nil {
		v4 = net.IP{0, 0, 0, 0}
	}
	return net.HardwareAddr{0x0a, 0x58, v4[0], v4[1], v4[2], v4[3]}
}
