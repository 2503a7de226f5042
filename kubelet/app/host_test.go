//go:build linux

package app

import (
	"os"
	"strings"
	"testing"
)

func TestNodeIP(t *testing.T) {
	for _, tc := range []struct{ in, ips, invalid, err string }{
		{"", "", "", ""},
		{"10.0.0.1", "10.0.0.1", "", ""},
		{"010.0.0.1", "10.0.0.1", "", ""},
		{"::", "::", "", ""},
		{"10.0.0.1, fd00::1", "10.0.0.1 fd00::1", "", ""},
		{"x,10.0.0.1", "10.0.0.1", "x", ""},
		{"10.0.0.1,10.0.0.2", "", "", "must contain either a single IP or a dual-stack pair of IPs"},
		{"10.0.0.1,fd00::1,fd00::2", "", "", "must contain either a single IP or a dual-stack pair of IPs"},
		{"0.0.0.0,fd00::1", "", "", "dual-stack node IP cannot include '0.0.0.0' or '::'"},
	} {
		ips, invalid, err := parseNodeIP(tc.in)
		var s []string
		for _, ip := range ips {
			s = append(s, ip.String())
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if strings.Join(s, " ") != tc.ips || strings.Join(invalid, " ") != tc.invalid || text != tc.err {
			t.Errorf("%q: %v, %v, %v", tc.in, s, invalid, err)
		}
	}
}

func TestNodeName(t *testing.T) {
	if n, err := nodeName(" Node-A "); n != "node-a" || err != nil {
		t.Error(n, err)
	}
	if _, err := nodeName("  "); err == nil || err.Error() != "empty hostname is invalid" {
		t.Error(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := nodeName(""); n != strings.ToLower(strings.TrimSpace(host)) || err != nil {
		t.Error(n, err)
	}
}

func TestAuthStandalone(t *testing.T) {
	for _, tc := range []struct {
		want   string
		change func(c *configuration)
	}{
		{"", func(*configuration) {}},
		{"no client provided, cannot use webhook authentication", func(c *configuration) { *c.Authentication.Webhook.Enabled = true }},
		{"no client provided, cannot use webhook authorization", func(c *configuration) { c.Authorization.Mode = "Webhook" }},
		{"unknown authorization mode x", func(c *configuration) { c.Authorization.Mode = "x" }},
		{"unable to load client CA file /no/file", func(c *configuration) { c.Authentication.X509.ClientCAFile = "/no/file" }},
	} {
		c := NewConfiguration()
		tc.change(c)
		err := checkAuth(c)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
			t.Errorf("%v, want %q", err, tc.want)
		}
	}
}

func TestCheckCPUs(t *testing.T) {
	if err := checkCPUs("0"); err != nil {
		t.Error(err)
	}
	if err := checkCPUs("0,4095"); err == nil || !strings.HasPrefix(err.Error(), "reserved-cpus: 0,4095 is not a subset of online-cpus: ") {
		t.Error(err)
	}
}
