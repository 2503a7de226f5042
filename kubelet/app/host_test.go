//go:build linux

package app

import (
	"strings"
	"testing"
)

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
