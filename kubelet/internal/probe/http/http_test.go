package http

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/probe"
)

func TestNewRequest(t *testing.T) {
	c := &v1.Container{Ports: []v1.ContainerPort{{Name: "web", ContainerPort: 8080}}}
	for _, tc := range []struct {
		name             string
		action           v1.HTTPGetAction
		url, host, agent string
		accept           string
		err              string
	}{
		{name: "plain", action: v1.HTTPGetAction{Path: "/ok", Port: intstr.FromInt32(80)}, url: "http://10.0.0.1:80/ok", host: "10.0.0.1:80", agent: ProbeAgent, accept: "*/*"},
		{name: "named port, https", action: v1.HTTPGetAction{Port: intstr.FromString("web"), Scheme: "HTTPS"}, url: "https://10.0.0.1:8080", host: "10.0.0.1:8080", agent: ProbeAgent, accept: "*/*"},
		{name: "number as text", action: v1.HTTPGetAction{Port: intstr.FromString("81")}, url: "http://10.0.0.1:81", host: "10.0.0.1:81", agent: ProbeAgent, accept: "*/*"},
		{name: "query", action: v1.HTTPGetAction{Path: "/a?b=c#d", Port: intstr.FromInt32(80)}, url: "http://10.0.0.1:80/a?b=c#d", host: "10.0.0.1:80", agent: ProbeAgent, accept: "*/*"},
		{name: "no URL", action: v1.HTTPGetAction{Path: "/%zz", Port: intstr.FromInt32(80)}, url: "http://10.0.0.1:80/%25zz", host: "10.0.0.1:80", agent: ProbeAgent, accept: "*/*"},
		{name: "host", action: v1.HTTPGetAction{Host: "example.com", Port: intstr.FromInt32(80)}, url: "http://example.com:80", host: "example.com:80", agent: ProbeAgent, accept: "*/*"},
		{name: "headers", action: v1.HTTPGetAction{Port: intstr.FromInt32(80), HTTPHeaders: []v1.HTTPHeader{{Name: "host", Value: "v.example"}, {Name: "user-agent", Value: "me"}, {Name: "Accept", Value: "text/plain"}}},
			url: "http://10.0.0.1:80", host: "v.example", agent: "me", accept: "text/plain"},
		{name: "no accept", action: v1.HTTPGetAction{Port: intstr.FromInt32(80), HTTPHeaders: []v1.HTTPHeader{{Name: "Accept"}}}, url: "http://10.0.0.1:80", host: "10.0.0.1:80", agent: ProbeAgent},
		{name: "unknown port", action: v1.HTTPGetAction{Port: intstr.FromString("x")}, err: `strconv.Atoi: parsing "x": invalid syntax`},
		{name: "port too large", action: v1.HTTPGetAction{Port: intstr.FromInt32(65536)}, err: "invalid port number: 65536"},
	} {
		r, err := NewRequest(&tc.action, c, "10.0.0.1", ProbeAgent)
		if err != nil || tc.err != "" {
			if fmt.Sprint(err) != tc.err {
				t.Errorf("%s: %v", tc.name, err)
			}
			continue
		}
		if r.URL.String() != tc.url || r.Host != tc.host || r.Header.Get("User-Agent") != tc.agent || r.Header.Get("Accept") != tc.accept {
			t.Errorf("%s: %v %v %v", tc.name, r.URL, r.Host, r.Header)
		}
		if _, has := r.Header["Accept"]; has != (tc.accept != "") {
			t.Errorf("%s: %v", tc.name, r.Header)
		}
	}
}

// server answers by URL; what it doesn't know is refused.
type server struct {
	l    *loop.Loop
	to   map[string]Response
	slow map[string]bool
	seen []string
}

func (s *server) HTTP(ctx context.Context, _ string, req *http.Request) (int, http.Header, []byte, error) {
	s.seen = append(s.seen, req.URL.String())
	if s.slow[req.URL.String()] {
		return 0, nil, nil, s.l.Sleep(ctx, time.Minute)
	}
	r, ok := s.to[req.URL.String()]
	if !ok {
		return 0, nil, nil, errors.New("dial tcp " + req.URL.Host + ": connect: connection refused")
	}
	return r.Status, r.Header, r.Body, nil
}

func redirect(to string) Response {
	return Response{Status: 302, Header: http.Header{"Location": {to}}, Body: []byte("moved")}
}

func TestProbe(t *testing.T) {
	loops := map[string]Response{}
	for i := range 20 {
		loops[fmt.Sprintf("http://h:80/%d", i)] = redirect(fmt.Sprintf("/%d", i+1))
	}
	for _, tc := range []struct {
		name     string
		to       map[string]Response
		slow     string
		want     probe.Result
		output   string
		requests int
	}{
		{"200", map[string]Response{"http://h:80/0": {Status: 200}}, "", probe.Success, "", 1},
		{"199", map[string]Response{"http://h:80/0": {Status: 199}}, "", probe.Failure, "HTTP probe failed with statuscode: 199", 1},
		{"304", map[string]Response{"http://h:80/0": {Status: 304}}, "", probe.Warning, "Probe terminated redirects, Response body: ", 1},
		{"400", map[string]Response{"http://h:80/0": {Status: 400}}, "", probe.Failure, "HTTP probe failed with statuscode: 400", 1},
		{"refused", nil, "", probe.Failure, `Get "http://h:80/0": dial tcp h:80: connect: connection refused`, 1},
		{"redirect", map[string]Response{"http://h:80/0": redirect("/x"), "http://h:80/x": {Status: 204}}, "", probe.Success, "", 2},
		{"to another port", map[string]Response{"http://h:80/0": redirect("https://h:443/x"), "https://h:443/x": {Status: 500}}, "", probe.Failure, "HTTP probe failed with statuscode: 500", 2},
		{"to another host", map[string]Response{"http://h:80/0": redirect("http://other/x")}, "", probe.Warning, "Probe terminated redirects, Response body: moved", 1},
		{"without location", map[string]Response{"http://h:80/0": {Status: 301}}, "", probe.Warning, "Probe terminated redirects, Response body: ", 1},
		{"in circles", loops, "", probe.Failure, `Get "http://h:80/10": stopped after 10 redirects`, 10},
		{"slow", nil, "http://h:80/0", probe.Failure, `Get "http://h:80/0": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`, 1},
		{"slow after a redirect", map[string]Response{"http://h:80/0": redirect("/x")}, "http://h:80/x", probe.Failure,
			`Get "http://h:80/x": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`, 2},
	} {
		l := loop.New(loop.Options{})
		s := &server{l: l, to: tc.to, slow: map[string]bool{tc.slow: true}}
		var got probe.Result
		var output string
		l.Root().Go("test", func(ctx context.Context) {
			req, err := NewRequest(&v1.HTTPGetAction{Path: "/0", Port: intstr.FromInt32(80)}, &v1.Container{}, "h", ProbeAgent)
			if err != nil {
				t.Error(err)
			}
			got, output = Probe(ctx, s, "c", req, time.Second)
		})
		if err := l.RunUntil(loop.Epoch().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		l.Close()
		if got != tc.want || output != tc.output || len(s.seen) != tc.requests {
			t.Errorf("%s: %s %q, requests %v", tc.name, got, output, s.seen)
		}
	}
}

func TestBodyIsCut(t *testing.T) {
	_, out := Judge(&Response{Status: 302, Body: []byte(strings.Repeat("x", 20<<10))})
	if n := strings.Count(out, "x"); n != 10<<10 {
		t.Errorf("%d bytes of the body are shown", n)
	}
}
