package identity

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/internal/pki"
)

// fakeAPI answers a kubelet, and writes down what it is asked.
type fakeAPI struct {
	t     *testing.T
	l     *loop.Loop
	ca    *pki.CA
	lines []string
	n     int
	shown time.Time
	// answer says what becomes of a request: "sign", "deny", "fail", "gone", "wait", or of its
	// creation: "down".
	answer func(at time.Duration) string
}

func (a *fakeAPI) at() time.Duration { return a.l.Since(loop.Epoch()) }

func (a *fakeAPI) say(format string, args ...any) {
	a.lines = append(a.lines, fmt.Sprintf("%v %s", a.at().Truncate(time.Second), fmt.Sprintf(format, args...)))
}

func (a *fakeAPI) ShowCertificate(until time.Time) {
	a.shown = until
	a.say("shows one until %v", until.Sub(loop.Epoch()))
}

func (a *fakeAPI) CreateCertificateSigningRequest(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, token bool) (*certificatesv1.CertificateSigningRequest, error) {
	who := "node"
	if token {
		who = "token"
	}
	answer := a.answer(a.at())
	switch {
	case answer == "down":
		a.say("%s: no answer", who)
		return nil, errors.New("connection refused")
	case !token && a.l.Now().After(a.shown):
		a.say("%s: 401", who)
		return nil, apierrors.NewUnauthorized("Unauthorized")
	}
	a.n++
	csr.Name, csr.UID = fmt.Sprint("csr-", a.n), types.UID(fmt.Sprint(a.n))
	a.say("%s: %s asked for, %v", who, csr.Name, csr.Spec.Usages)
	return csr, a.l.Sleep(ctx, 10*time.Millisecond)
}

func (a *fakeAPI) WatchCertificateSigningRequest(g *loop.Group, name string, _ bool, seen func(*certificatesv1.CertificateSigningRequest)) func() {
	csr := &certificatesv1.CertificateSigningRequest{}
	csr.Name, csr.UID = name, types.UID(strings.TrimPrefix(name, "csr-"))
	condition := func(t certificatesv1.RequestConditionType) {
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: t, Status: v1.ConditionTrue})
	}
	over := false
	g.After(10*time.Millisecond, func() { seen(csr.DeepCopy()) })
	g.After(time.Second, func() {
		switch a.answer(a.at()) {
		case "deny":
			condition(certificatesv1.CertificateDenied)
		case "fail":
			condition(certificatesv1.CertificateApproved)
			condition(certificatesv1.CertificateFailed)
		case "gone":
			csr = nil
		case "sign":
			condition(certificatesv1.CertificateApproved)
			if !over {
				seen(csr.DeepCopy()) // approved, and not signed yet
			}
			now := a.l.Now()
			text, err := a.ca.Sign(&x509.Certificate{NotBefore: now, NotAfter: now.Add(20 * time.Minute)}, pki.Key(1, name).Public(), name)
			if err != nil {
				a.t.Error(err)
			}
			csr.Status.Certificate = text
		default:
			return
		}
		if !over {
			seen(csr)
		}
	})
	return func() { over = true }
}

// play runs a node until a time, with kubelets that are started again ten seconds after they have
// ended, and returns what happened.
func play(t *testing.T, o Options, until time.Duration, answer func(at time.Duration) string) (*Identity, []string) {
	t.Helper()
	l := loop.New(loop.Options{Name: "n", Seed: 3})
	t.Cleanup(l.Close)
	ca, err := pki.New(1, loop.Epoch())
	if err != nil {
		t.Fatal(err)
	}
	api := &fakeAPI{t: t, l: l, ca: ca, answer: answer}
	o.Loop, o.API, o.Node, o.Address = l, api, "n", "10.0.0.1"
	i := New(o)
	var start func()
	start = func() {
		g := l.NewGroup("kubelet")
		i.Start(g, func(err error) {
			api.say("exits: %v", err)
			g.Kill()
			l.Root().After(10*time.Second, start)
		}, nil)
	}
	start()
	if err := l.RunUntil(loop.Epoch().Add(until)); err != nil {
		t.Fatal(err)
	}
	return i, api.lines
}

// always is an answer.
func always(s string) func(time.Duration) string { return func(time.Duration) string { return s } }

// TestTranscripts are lives of a client certificate of 20 minutes, which is asked for anew at 14 to
// 18 minutes.
func TestTranscripts(t *testing.T) {
	from := func(d time.Duration, before, after string) func(time.Duration) string {
		return func(at time.Duration) string {
			if at < d {
				return before
			}
			return after
		}
	}
	const usages = "[digital signature client auth]"
	for _, c := range []struct {
		name      string
		bootstrap bool
		until     time.Duration
		answer    func(at time.Duration) string
		want      []string
	}{
		{"rotated", false, 30 * time.Minute, always("sign"), []string{
			"0s shows one until 20m0s", "17m54s node: csr-1 asked for, " + usages, "18m0s shows one until 37m55",
		}},
		{"denied, then signed", false, 30 * time.Minute, from(18*time.Minute, "deny", "sign"), []string{
			"0s shows one until 20m0s", "17m54s node: csr-1 asked for, " + usages, "17m58s node: csr-2 asked for, " + usages,
			"18m3s node: csr-3 asked for, " + usages, "18m10s shows one until 38m4",
		}},
		{"failed, gone", false, 18*time.Minute + 5*time.Second, from(17*time.Minute+56*time.Second, "fail", "gone"), []string{
			"0s shows one until 20m0s", "17m54s node: csr-1 asked for, " + usages, "17m58s node: csr-2 asked for, " + usages, "18m3s node: csr-3 asked for, " + usages,
		}},
		{"never signed: waits 15 minutes, has 401, and exits as it has missed one for 5", false, 38*time.Minute + 30*time.Second, always("wait"), []string{
			"0s shows one until 20m0s", "17m54s node: csr-1 asked for, " + usages,
			"32m57s node: 401", "33m0s exits: " + errNone.Error(),
			"33m10s node: 401", "33m12s node: 401", "33m16s node: 401", "33m24s node: 401", "33m41s node: 401",
			"34m13s node: 401", "34m45s node: 401", "35m17s node: 401", "35m49s node: 401", "36m21s node: 401", "36m53s node: 401", "37m25s node: 401", "37m57s node: 401",
			"38m10s exits: " + errNone.Error(), "38m20s node: 401", "38m22s node: 401", "38m26s node: 401",
		}},
		{"with a token a new process gets one, and asks with that from then on", true, 52 * time.Minute, from(33*time.Minute+5*time.Second, "wait", "sign"), []string{
			"0s shows one until 20m0s", "17m54s node: csr-1 asked for, " + usages,
			"32m57s node: 401", "33m0s exits: " + errNone.Error(),
			"33m10s token: csr-2 asked for, " + usages, "33m12s shows one until 53m11",
			"49m48s node: csr-3 asked for, " + usages, "49m50s shows one until 1h9m",
		}},
		{"no answer: it goes on", false, 26 * time.Minute, from(15*time.Minute, "sign", "down"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got := play(t, Options{Lifetime: 20 * time.Minute, Rotate: true, Bootstrap: c.bootstrap}, c.until, c.answer)
			if c.want == nil {
				if slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "exits") }) {
					t.Errorf("exits: %q", got)
				}
				return
			}
			same := len(got) == len(c.want)
			for i := range min(len(got), len(c.want)) {
				same = same && strings.HasPrefix(got[i], c.want[i])
			}
			if !same {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestServing has no certificate to serve with until one is signed, nor once it has expired; what
// is asked for names the node. Without serverTLSBootstrap it serves always.
func TestServing(t *testing.T) {
	for _, c := range []struct {
		serve  bool
		answer string
		until  time.Duration
		want   bool
	}{
		{true, "sign", 900 * time.Millisecond, false}, {true, "sign", 5 * time.Second, true}, {true, "sign", time.Hour, true},
		{true, "wait", time.Hour, false}, {true, "deny", time.Minute, false}, {false, "wait", time.Minute, true},
	} {
		i, lines := play(t, Options{Lifetime: 24 * time.Hour, Serve: c.serve}, c.until, always(c.answer))
		if i.Serves() != c.want {
			t.Errorf("%+v: serves %v\n%s", c, !c.want, strings.Join(lines, "\n"))
		}
	}
	i, _ := play(t, Options{Lifetime: 24 * time.Hour, Serve: true}, 25*time.Minute, func(at time.Duration) string {
		if at < time.Minute {
			return "sign"
		}
		return "wait"
	})
	if i.Serves() {
		t.Error("serves with a certificate that has expired")
	}
}

// TestRequest is what is asked for: the same with the same seed, another each time.
func TestRequest(t *testing.T) {
	one := func(signer string) *x509.CertificateRequest {
		i, _ := play(t, Options{Lifetime: time.Hour}, time.Second, always("wait"))
		m := (&process{i: i, g: i.opts.Loop.Root()}).newManager(signer, &i.client)
		csr, err := m.request()
		if err != nil {
			t.Fatal(err)
		}
		again, err := m.request()
		if err != nil || string(again.Spec.Request) == string(csr.Spec.Request) {
			t.Error("a key is used twice", err)
		}
		block, _ := pem.Decode(csr.Spec.Request)
		r, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.CheckSignature(); err != nil {
			t.Error(err)
		}
		return r
	}
	client, serving := one(certificatesv1.KubeAPIServerClientKubeletSignerName), one(certificatesv1.KubeletServingSignerName)
	if got := client.Subject.String(); got != "CN=system:node:n,O=system:nodes" || len(client.DNSNames)+len(client.IPAddresses) > 0 || client.PublicKeyAlgorithm != x509.ECDSA {
		t.Errorf("client: %s %v %v %v", got, client.DNSNames, client.IPAddresses, client.PublicKeyAlgorithm)
	}
	if !slices.Equal(serving.DNSNames, []string{"n"}) || len(serving.IPAddresses) != 1 || serving.IPAddresses[0].String() != "10.0.0.1" {
		t.Errorf("serving: %v %v", serving.DNSNames, serving.IPAddresses)
	}
	if again := one(certificatesv1.KubeAPIServerClientKubeletSignerName); string(again.Raw) != string(client.Raw) {
		t.Error("the same seed asks for something else")
	}
}

// TestFamilies tells what /metrics has of both certificates.
func TestFamilies(t *testing.T) {
	i, _ := play(t, Options{Lifetime: 20 * time.Minute, Rotate: true, Serve: true}, time.Hour, always("sign"))
	got := map[string]float64{}
	for _, f := range i.Families() {
		m := f.Metric[0]
		got[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	if len(got) != 5 || got["kubelet_certificate_manager_client_ttl_seconds"] <= 0 || got["kubelet_certificate_manager_server_rotation_seconds"] != 3 {
		t.Errorf("%v", got)
	}
}
