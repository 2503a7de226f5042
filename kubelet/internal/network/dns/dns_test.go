package dns

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func ptr[T any](v T) *T { return &v }

func pod(name string) *v1.Pod {
	p := &v1.Pod{}
	p.Name, p.Namespace = name, "ns"
	return p
}

func TestGetPodDNS(t *testing.T) {
	host := &runtimeapi.DNSConfig{Servers: []string{"127.0.0.1"}, Searches: []string{"corp"}}
	own := &v1.PodDNSConfig{
		Nameservers: []string{"10.96.0.10", "1.1.1.1"}, Searches: []string{"corp", "own"},
		Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: ptr("2")}, {Name: "edns0"}},
	}
	with := &Configurer{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "cluster.local"}
	for _, tc := range []struct {
		c      *Configurer
		policy v1.DNSPolicy
		host   bool
		own    *v1.PodDNSConfig
		want   string
	}{
		{with, v1.DNSClusterFirst, false, nil, "10.96.0.10|ns.svc.cluster.local,svc.cluster.local,cluster.local,corp|ndots:5|"},
		{with, v1.DNSClusterFirst, true, nil, "127.0.0.1|corp||"},
		{with, v1.DNSClusterFirstWithHostNet, true, nil, "10.96.0.10|ns.svc.cluster.local,svc.cluster.local,cluster.local,corp|ndots:5|"},
		{with, v1.DNSDefault, false, nil, "127.0.0.1|corp||"},
		{with, v1.DNSNone, false, own, "10.96.0.10,1.1.1.1|corp,own|ndots:2,edns0|"},
		{with, v1.DNSNone, false, nil, "|||"},
		{with, v1.DNSClusterFirst, false, own, "10.96.0.10,1.1.1.1|ns.svc.cluster.local,svc.cluster.local,cluster.local,corp,own|ndots:2,edns0|"},
		{&Configurer{ClusterDNS: []string{"10.96.0.10"}}, v1.DNSClusterFirst, false, nil, "10.96.0.10|corp|ndots:5|"},
		{&Configurer{}, v1.DNSClusterFirst, false, nil, "127.0.0.1|corp||MissingClusterDNS"},
		{&Configurer{}, v1.DNSClusterFirst, true, nil, "127.0.0.1|corp||"},
		{&Configurer{NoResolvConf: true, NodeIPs: []string{"10.0.0.1", "fd00::1"}}, v1.DNSDefault, false, nil, "127.0.0.1,::1|.||"},
		{&Configurer{NoResolvConf: true}, v1.DNSDefault, false, nil, "127.0.0.1|.||"},
	} {
		p := pod("p")
		p.Spec.DNSPolicy, p.Spec.HostNetwork, p.Spec.DNSConfig = tc.policy, tc.host, tc.own
		d, warnings := tc.c.GetPodDNS(p, host)
		var reasons []string
		for _, w := range warnings {
			reasons = append(reasons, w.Reason)
		}
		got := strings.Join([]string{strings.Join(d.Servers, ","), strings.Join(d.Searches, ","), strings.Join(d.Options, ","), strings.Join(reasons, ",")}, "|")
		if got != tc.want {
			t.Errorf("%s, host network %t: %s, want %s", tc.policy, tc.host, got, tc.want)
		}
	}
	if len(host.Searches) != 1 || len(with.ClusterDNS) != 1 {
		t.Error("what is shared was written to")
	}
}

func TestLimits(t *testing.T) {
	p := pod("p")
	p.Spec.DNSPolicy = v1.DNSNone
	for _, tc := range []struct {
		name              string
		servers, searches []string
		want              []string
		kept              int
	}{
		{"all fits", names(3, 5), names(32, 60), nil, 32},
		// 8 of 227 and one of 224 with 8 spaces are 2048 characters.
		{"the line at its limit", nil, append(names(8, 227), strings.Repeat("x", 224)), nil, 9},
		{"the line one over it", nil, append(names(8, 227), strings.Repeat("x", 225)), []string{
			"Search Line limits were exceeded, some search paths have been omitted, the applied search line is: " + strings.Join(names(8, 227), " ")}, 8},
		{"one as long as may be", nil, []string{strings.Repeat("x", 253)}, nil, 1},
		{"servers", []string{"1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"}, nil, []string{
			"Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 1.1.1.1 2.2.2.2 3.3.3.3"}, 0},
		{"too many", nil, names(33, 3), []string{
			"Search Line limits were exceeded, some search paths have been omitted, the applied search line is: " + strings.Join(names(32, 3), " ")}, 32},
		{"one too long", nil, []string{"a", strings.Repeat("x", 254), "b"}, []string{
			"Search Line limits were exceeded, some search paths have been omitted, the applied search line is: a b"}, 2},
		{"the line too long", nil, names(9, 250), []string{
			"Search Line limits were exceeded, some search paths have been omitted, the applied search line is: " + strings.Join(names(8, 250), " ")}, 8},
	} {
		p.Spec.DNSConfig = &v1.PodDNSConfig{Nameservers: tc.servers, Searches: tc.searches}
		d, warnings := (&Configurer{}).GetPodDNS(p, nil)
		var got []string
		for _, w := range warnings {
			got = append(got, w.Message)
		}
		if fmt.Sprint(got) != fmt.Sprint(tc.want) || len(d.Searches) != tc.kept {
			t.Errorf("%s: %d kept, %v", tc.name, len(d.Searches), got)
		}
	}
}

// names makes n different names of a length.
func names(n, length int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%0*d", length, i))
	}
	return out
}

func TestHostname(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(*v1.Pod)
		want string // host|domain|kernel's, or the error
	}{
		{"its own name", func(*v1.Pod) {}, "web||web"},
		{"hostname", func(p *v1.Pod) { p.Spec.Hostname = "h" }, "h||h"},
		{"subdomain", func(p *v1.Pod) { p.Spec.Subdomain = "s" }, "web|s.ns.svc.cluster.local|web"},
		{"FQDN", func(p *v1.Pod) { p.Spec.Subdomain, p.Spec.SetHostnameAsFQDN = "s", ptr(true) }, "web|s.ns.svc.cluster.local|web.s.ns.svc.cluster.local"},
		{"FQDN without a domain", func(p *v1.Pod) { p.Spec.SetHostnameAsFQDN = ptr(true) }, "web||web"},
		{"override", func(p *v1.Pod) { p.Spec.HostnameOverride, p.Spec.Subdomain = ptr("a.b"), "s" }, "a.b||a.b"},
		{"cut", func(p *v1.Pod) { p.Name = strings.Repeat("a", 60) + "--" + "bcd" }, strings.Repeat("a", 60) + "--b||" + strings.Repeat("a", 60) + "--b"},
		{"trimmed", func(p *v1.Pod) { p.Name = strings.Repeat("a", 62) + "-x" }, strings.Repeat("a", 62) + "||" + strings.Repeat("a", 62)},
		{"FQDN too long", func(p *v1.Pod) {
			p.Name, p.Spec.Subdomain, p.Spec.SetHostnameAsFQDN = strings.Repeat("a", 50), "s", ptr(true)
		}, "failed to construct FQDN from pod hostname and cluster domain, FQDN " + strings.Repeat("a", 50) +
			".s.ns.svc.cluster.local is too long (64 characters is the max, 73 characters requested)"},
	} {
		p := pod("web")
		tc.set(p)
		host, domain, err := HostnameAndDomain(p, "cluster.local")
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		got, err := KernelHostname(p, "cluster.local")
		if err != nil {
			got = err.Error()
		} else {
			got = host + "|" + domain + "|" + got
		}
		if got != tc.want {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
}

func TestParseResolvConf(t *testing.T) {
	d := ParseResolvConf("# a comment\nsearch gone\nnameserver 1.1.1.1 # x\nnameserver\nsearch a.b. . c\noptions ndots:1 edns0\noptions ndots:3\n\n")
	if got := fmt.Sprint(d.Servers, d.Searches, d.Options); got != "[1.1.1.1] [a.b c] [ndots:3 edns0]" {
		t.Error(got)
	}
	c := &Configurer{ClusterDomain: "cluster.local"}
	if got := c.CheckLimits("/r", &runtimeapi.DNSConfig{Searches: names(30, 4)}); len(got) != 1 || got[0] != "Resolv.conf file '/r' contains search line consisting of more than 29 domains!" {
		t.Error(got)
	}
	if got := c.CheckLimits("/r", d); got != nil {
		t.Error(got)
	}
	for _, tc := range []struct {
		name     string
		domain   string // the cluster's
		searches []string
		want     string
	}{
		{"as many as may be", "cluster.local", names(29, 4), ""},
		{"without the cluster's", "", names(32, 4), ""},
		{"too many", "", names(33, 4), "Resolv.conf file '/r' contains search line consisting of more than 32 domains!"},
		{"as long as may be", "", names(1, 253), ""},
		{"too long", "", names(1, 254), `Resolv.conf file "/r" contains a search path which length is more than allowed 253 chars!`},
		{"the line at its limit", "", append(names(8, 227), strings.Repeat("x", 224)), ""},
		{"the line over it", "", append(names(8, 227), strings.Repeat("x", 225)), "Resolv.conf file '/r' contains search line which length is more than allowed 2048 chars!"},
	} {
		c := &Configurer{ClusterDomain: tc.domain}
		if got := strings.Join(c.CheckLimits("/r", &runtimeapi.DNSConfig{Searches: tc.searches}), "; "); got != tc.want {
			t.Errorf("%s: %q", tc.name, got)
		}
	}
}

func FuzzParseResolvConf(f *testing.F) {
	f.Add("search a.b. .\noptions ndots:1 ndots:2\nnameserver 1")
	f.Fuzz(func(t *testing.T, text string) {
		d := ParseResolvConf(text)
		for _, s := range d.Searches {
			if s == "" || s == "." || strings.ContainsAny(s, " \t\n") {
				t.Errorf("search %q", s)
			}
		}
	})
}
