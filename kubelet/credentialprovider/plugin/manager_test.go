package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfigv1 "k8s.io/kubelet/config/v1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/credentialprovider"
)

func minutes(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Minute}
}

// rig is a manager with plugins, accounts and tokens of a test.
type rig struct {
	t *testing.T
	l *loop.Loop
	m *Manager
	// The plugins' answers, without what all have; how long they take and how they fail.
	answer string
	takes  time.Duration
	fails  error
	// annotations are those of all accounts, uid is theirs; down: there are none.
	annotations map[string]string
	uid         types.UID
	down        bool
	lines       []string // of runs and of the log
}

func newRig(t *testing.T, change func(o *Options), providers ...kubeletconfigv1.CredentialProvider) *rig {
	t.Helper()
	c, err := NewConfig(&kubeletconfigv1.CredentialProviderConfig{Providers: providers}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	l := loop.New(loop.Options{})
	t.Cleanup(l.Close)
	r := &rig{t: t, l: l, uid: "1", answer: `"cacheKeyType": "Image", "auth": {"quay.io": {"username": "u", "password": "p"}}`}
	o := Options{Group: l.NewGroup("kubelet"), Loop: l, Config: c, Runner: r, ServiceAccountTokens: true, Accounts: r, Tokens: r, Log: r.logf}
	if change != nil {
		change(&o)
	}
	r.m = New(o)
	return r
}

func (r *rig) logf(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// now is the time without that of the loop's steps.
func (r *rig) now() time.Duration { return r.l.Since(loop.Epoch()).Round(time.Millisecond) }

func (r *rig) GetServiceAccount(_ context.Context, namespace, name string) (*v1.ServiceAccount, error) {
	if r.down {
		return nil, errors.New("no answer")
	}
	return &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: r.uid, Annotations: r.annotations}}, nil
}

// GetServiceAccountToken makes a token of all that is asked for.
func (r *rig) GetServiceAccountToken(_ context.Context, namespace, name string, tr *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	ref := tr.Spec.BoundObjectRef
	tr.Status.Token = fmt.Sprintf("%s/%s(%s) for %s in %s %s(%s)", namespace, name, tr.UID, strings.Join(tr.Spec.Audiences, ","), ref.Kind, ref.Name, ref.UID)
	return tr, nil
}

func (r *rig) Run(ctx context.Context, p *kubeletconfigv1.CredentialProvider, request []byte) (stdout, stderr []byte, err error) {
	var asked struct {
		Image, ServiceAccountToken string
		ServiceAccountAnnotations  map[string]string
	}
	if err := json.Unmarshal(request, &asked); err != nil {
		r.t.Error(err)
	}
	line := fmt.Sprintf("%v %s %s", r.now(), p.Name, asked.Image)
	if asked.ServiceAccountToken != "" {
		line += fmt.Sprintf(" by %s %v", asked.ServiceAccountToken, asked.ServiceAccountAnnotations)
	}
	r.lines = append(r.lines, line)
	if err := r.l.Sleep(ctx, r.takes); err != nil {
		return nil, nil, err
	}
	if r.fails != nil {
		return nil, []byte("nobody home"), r.fails
	}
	return []byte(`{"kind": "CredentialProviderResponse", "apiVersion": "` + p.APIVersion + `", ` + r.answer + `}`), nil, nil
}

// pod is one of the account robot, unless its name is lone.
func pod(name string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("u-" + name)}}
	if name != "lone" {
		p.Spec.ServiceAccountName = "robot"
	}
	return p
}

// ask asks at a time for a pod's image, and has the answer written down.
func (r *rig) ask(at time.Duration, name, image string) {
	r.l.Root().At(loop.Epoch().Add(at), func() {
		r.l.Root().Go("ask", func(ctx context.Context) {
			var got []string
			for _, c := range r.m.Lookup(ctx, pod(name), image) {
				text := c.Auth.Username + ":" + c.Auth.Password
				if c.ServiceAccount != nil {
					text += " of " + c.ServiceAccount.Namespace + "/" + c.ServiceAccount.Name + "(" + c.ServiceAccount.UID + ")"
				}
				got = append(got, text)
			}
			r.lines = append(r.lines, fmt.Sprintf("%v %s: [%s]", r.now(), name, strings.Join(got, ", ")))
		})
	})
}

// want runs for two hours and compares what happened.
func (r *rig) want(name string, lines ...string) {
	r.t.Helper()
	if err := r.l.RunUntil(loop.Epoch().Add(2 * time.Hour)); err != nil {
		r.t.Fatal(err)
	}
	if got, want := strings.Join(r.lines, "\n"), strings.Join(lines, "\n"); got != want {
		r.t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// TestCacheKeys has one answer serve an image, a registry or all images that match.
func TestCacheKeys(t *testing.T) {
	for _, tc := range []struct {
		keyType string
		runs    []string // of quay.io/a, quay.io/a again, quay.io/b, other.io:5000/a
	}{
		{"Image", []string{"quay.io/a", "quay.io/b", "other.io:5000/a"}},
		{"Registry", []string{"quay.io/a", "other.io:5000/a"}},
		{"Global", []string{"quay.io/a"}},
	} {
		p := valid("plug")
		p.MatchImages = []string{"*.io", "*.io:5000"}
		r := newRig(t, nil, p)
		r.answer = `"cacheKeyType": "` + tc.keyType + `"`
		for i, image := range []string{"quay.io/a", "quay.io/a", "quay.io/b", "other.io:5000/a", "other.com/a"} {
			r.ask(time.Duration(i)*time.Second, "p", image)
		}
		if err := r.l.RunUntil(loop.Epoch().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		var runs []string
		for _, line := range r.lines {
			if _, image, ok := strings.Cut(line, " plug "); ok {
				runs = append(runs, image)
			}
		}
		if got, want := strings.Join(runs, " "), strings.Join(tc.runs, " "); got != want {
			t.Errorf("%s: %s, want %s", tc.keyType, got, want)
		}
	}
}

// TestExpiry has an answer kept as long as it says, or else as the configuration does.
func TestExpiry(t *testing.T) {
	for _, tc := range []struct {
		name, duration string
		standard       int // minutes
		at             time.Duration
		again          bool
	}{
		{"said", `, "cacheDuration": "2m"`, 1, 2*time.Minute - time.Second, false},
		{"said and over", `, "cacheDuration": "2m"`, 5, 2*time.Minute + time.Second, true},
		{"not to be kept", `, "cacheDuration": "0s"`, 5, time.Second, true},
		{"over before it began", `, "cacheDuration": "-1m"`, 5, time.Second, true},
		{"unsaid", "", 3, 3*time.Minute - time.Second, false},
		{"unsaid and over", "", 3, 3*time.Minute + time.Second, true},
		{"unsaid, none is kept", "", 0, time.Second, true},
	} {
		p := valid("plug")
		p.DefaultCacheDuration = minutes(tc.standard)
		r := newRig(t, nil, p)
		r.answer += tc.duration
		r.ask(0, "p", "quay.io/a")
		r.ask(tc.at, "p", "quay.io/a")
		want := []string{"0s plug quay.io/a", "0s p: [u:p]"}
		if tc.again {
			want = append(want, fmt.Sprintf("%v plug quay.io/a", tc.at))
		}
		r.want(tc.name, append(want, fmt.Sprintf("%v p: [u:p]", tc.at))...)
	}
}

// TestCache has an answer good until it expires, under the first key that has one.
func TestCache(t *testing.T) {
	at := func(s int) time.Time { return loop.Epoch().Add(time.Duration(s) * time.Second) }
	answer := func(user string) credentialprovider.DockerConfig {
		return credentialprovider.DockerConfig{"quay.io": {Username: user}}
	}
	c := cache{purged: at(0)}
	c.put(cacheKey{globalKey, ""}, answer("global"), at(100))
	c.put(cacheKey{"quay.io", ""}, answer("registry"), at(50))
	c.put(cacheKey{"quay.io/a", ""}, answer("image"), at(20))
	c.put(cacheKey{"quay.io/a", "robot"}, answer("robot"), at(20))
	for _, tc := range []struct {
		at             int
		base, identity string
		want           string
	}{
		{0, "quay.io/a", "", "image"}, {0, "quay.io/b", "", "registry"}, {0, "other.io/a", "", "registry"},
		{0, "quay.io/a", "robot", "robot"}, {0, "quay.io/b", "robot", ""}, {0, "quay.io/a", "cook", ""},
		{20, "quay.io/a", "", "image"}, {21, "quay.io/a", "", "registry"}, {50, "quay.io/a", "", "registry"}, {51, "quay.io/a", "", "global"}, {101, "quay.io/a", "", ""},
	} {
		got, ok := c.get(at(tc.at), []string{tc.base, "quay.io", globalKey}, tc.identity)
		if user := got["quay.io"].Username; user != tc.want || ok != (tc.want != "") {
			t.Errorf("%+v: %q %t", tc, user, ok)
		}
	}
}

// TestPurge has answers go that nobody asks for again.
func TestPurge(t *testing.T) {
	r := newRig(t, nil, valid("plug"))
	for i := range 5 {
		r.ask(0, "p", fmt.Sprint("quay.io/", i))
	}
	r.ask(15*time.Minute+1, "p", "quay.io/new")
	if err := r.l.RunUntil(loop.Epoch().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if n := len(r.m.providers[0].cache.entries); n != 1 {
		t.Errorf("%d answers are kept", n)
	}
}

// TestSingleFlight has the plugin run once for those who ask at the same time, and once
// more for another image.
func TestSingleFlight(t *testing.T) {
	r := newRig(t, nil, valid("plug"))
	r.takes = 10 * time.Second
	r.ask(0, "a", "quay.io/a")
	r.ask(time.Second, "b", "quay.io/a")
	r.ask(2*time.Second, "c", "quay.io/c")
	r.want("", "0s plug quay.io/a", "2s plug quay.io/c", "10s a: [u:p]", "10s b: [u:p]", "12s c: [u:p]")
}

// TestFailures has no credentials from a plugin that fails, and the reason in the log.
func TestFailures(t *testing.T) {
	const failed = "Failed to provide credentials for image provider=plug image=quay.io/a: "
	for _, tc := range []struct {
		name, answer string
		takes        time.Duration
		fails        error
		want         string
	}{
		{"exits", "", time.Second, errors.New("exit status 1"), failed + "failed to get credential from external registry credential provider: error execing credential provider plugin plug for image quay.io/a: exit status 1: nobody home"},
		{"hangs", "", time.Hour, nil, failed + "failed to get credential from external registry credential provider: error execing credential provider plugin plug for image quay.io/a: context deadline exceeded: "},
		{"no cache key", `"auth": {}`, time.Second, nil, failed + "credential provider plugin did not return a valid cacheKeyType: "},
		{"another field", `"pass": "x"`, time.Second, nil, failed + "failed to get credential from external registry credential provider: error decoding credential provider plugin response from stdout"},
	} {
		r := newRig(t, nil, valid("plug"))
		r.answer, r.takes, r.fails = tc.answer, tc.takes, tc.fails
		r.ask(0, "p", "quay.io/a")
		end := min(tc.takes, time.Minute)
		r.want(tc.name, "0s plug quay.io/a", tc.want, fmt.Sprintf("%v p: []", end))
	}
}

// TestOrder has credentials of several plugins in one list: by place, then by plugin.
func TestOrder(t *testing.T) {
	first, second, silent := valid("first"), valid("second"), valid("silent")
	silent.MatchImages = []string{"other.io"}
	r := newRig(t, nil, first, silent, second)
	r.answer = `"cacheKeyType": "Image", "auth": {"quay.io": {"username": "whole"}, "quay.io/a": {"username": "part"}, "other.io": {"username": "no"}}`
	r.ask(0, "p", "quay.io/a")
	r.want("", "0s first quay.io/a", "0s second quay.io/a", "0s p: [part:, part:, whole:, whole:]")
}

// TestTokens has what a plugin is told of a pod's service account, and for whom its
// answers are good.
func TestTokens(t *testing.T) {
	tokens := func(change func(a *kubeletconfigv1.ServiceAccountTokenAttributes)) kubeletconfigv1.CredentialProvider {
		p := valid("plug")
		p.TokenAttributes = attributes()
		change(p.TokenAttributes)
		return p
	}
	const a = "0s plug quay.io/a by ns/robot(1) for registry in Pod a(u-a) map[]"
	for _, tc := range []struct {
		name   string
		change func(a *kubeletconfigv1.ServiceAccountTokenAttributes)
		set    func(r *rig)
		pods   []string
		want   []string
	}{
		{"by token", func(*kubeletconfigv1.ServiceAccountTokenAttributes) {}, nil, []string{"a", "a", "b"}, []string{
			a, "0s a: [u:p of ns/robot(1)]", "1s a: [u:p of ns/robot(1)]",
			"2s plug quay.io/a by ns/robot(1) for registry in Pod b(u-b) map[]", "2s b: [u:p of ns/robot(1)]",
		}},
		{"by account", func(a *kubeletconfigv1.ServiceAccountTokenAttributes) { a.CacheType = "ServiceAccount" }, nil, []string{"a", "b"}, []string{
			a, "0s a: [u:p of ns/robot(1)]", "1s b: [u:p of ns/robot(1)]",
		}},
		{"by account, made anew", func(a *kubeletconfigv1.ServiceAccountTokenAttributes) { a.CacheType = "ServiceAccount" },
			func(r *rig) { r.l.Root().At(loop.Epoch().Add(time.Second/2), func() { r.uid = "2" }) }, []string{"a", "a"}, []string{
				a, "0s a: [u:p of ns/robot(1)]",
				"1s plug quay.io/a by ns/robot(2) for registry in Pod a(u-a) map[]", "1s a: [u:p of ns/robot(2)]",
			}},
		{"by account, other annotations", func(a *kubeletconfigv1.ServiceAccountTokenAttributes) {
			a.CacheType, a.OptionalServiceAccountAnnotationKeys = "ServiceAccount", []string{"role"}
		}, func(r *rig) {
			r.l.Root().At(loop.Epoch().Add(time.Second/2), func() { r.annotations = map[string]string{"role": "chef", "more": "x"} })
		}, []string{"a", "b"}, []string{
			a, "0s a: [u:p of ns/robot(1)]",
			"1s plug quay.io/a by ns/robot(1) for registry in Pod b(u-b) map[role:chef]", "1s b: [u:p of ns/robot(1)]",
		}},
		{"no account, and one is needed", func(*kubeletconfigv1.ServiceAccountTokenAttributes) {}, nil, []string{"lone"}, []string{"0s lone: []"}},
		{"no account", func(a *kubeletconfigv1.ServiceAccountTokenAttributes) { a.RequireServiceAccount = ptr.To(false) }, nil, []string{"lone", "a"}, []string{
			"0s plug quay.io/a", "0s lone: [u:p]",
			"1s plug quay.io/a by ns/robot(1) for registry in Pod a(u-a) map[]", "1s a: [u:p of ns/robot(1)]",
		}},
		{"an annotation lacks", func(a *kubeletconfigv1.ServiceAccountTokenAttributes) {
			a.RequiredServiceAccountAnnotationKeys = []string{"role"}
		}, nil, []string{"a"}, []string{"0s a: []"}},
		{"annotations", func(a *kubeletconfigv1.ServiceAccountTokenAttributes) {
			a.RequiredServiceAccountAnnotationKeys, a.OptionalServiceAccountAnnotationKeys = []string{"role"}, []string{"team"}
		}, func(r *rig) { r.annotations = map[string]string{"role": "", "other": "x"} }, []string{"a"}, []string{
			"0s plug quay.io/a by ns/robot(1) for registry in Pod a(u-a) map[role:]", "0s a: [u:p of ns/robot(1)]",
		}},
		{"the API is down", func(*kubeletconfigv1.ServiceAccountTokenAttributes) {}, func(r *rig) { r.down = true }, []string{"a"}, []string{
			"Failed to provide credentials for image provider=plug image=quay.io/a pod=ns/a podUID=u-a serviceAccount=ns/robot: failed to get service account: no answer", "0s a: []",
		}},
		{"the token is the password", func(*kubeletconfigv1.ServiceAccountTokenAttributes) {}, func(r *rig) {
			r.answer = `"cacheKeyType": "Image", "auth": {"quay.io": {"password": "ns/robot(1) for registry in Pod a(u-a)"}}`
		}, []string{"a"}, []string{a, "0s a: [:ns/robot(1) for registry in Pod a(u-a) of ns/robot(1)]"}},
		{"it is, for all of the account", func(a *kubeletconfigv1.ServiceAccountTokenAttributes) { a.CacheType = "ServiceAccount" }, func(r *rig) {
			r.answer = `"cacheKeyType": "Image", "auth": {"quay.io": {"password": "ns/robot(1) for registry in Pod a(u-a)"}}`
		}, []string{"a"}, []string{
			a, "Failed to provide credentials for image provider=plug image=quay.io/a pod=ns/a podUID=u-a serviceAccount=ns/robot: credential provider plugin returned the service account token as the password which is not allowed when service account cache type is not set to 'Token'", "0s a: []",
		}},
	} {
		r := newRig(t, nil, tokens(tc.change))
		if tc.set != nil {
			tc.set(r)
		}
		for i, name := range tc.pods {
			r.ask(time.Duration(i)*time.Second, name, "quay.io/a")
		}
		r.want(tc.name, tc.want...)
	}
	for _, tc := range []struct {
		name   string
		change func(o *Options)
		want   []string
	}{
		{"standalone", func(o *Options) { o.Accounts, o.Tokens = nil, nil }, []string{
			"Failed to provide credentials for image provider=plug image=quay.io/a pod=ns/a podUID=u-a serviceAccount=ns/robot: failed to get service account: cannot get ServiceAccounts when kubelet is in standalone mode", "0s a: []",
		}},
		{"without the gate", func(o *Options) { o.ServiceAccountTokens = false }, []string{"0s plug quay.io/a", "0s a: [u:p]"}},
	} {
		r := newRig(t, tc.change, tokens(func(*kubeletconfigv1.ServiceAccountTokenAttributes) {}))
		r.ask(0, "a", "quay.io/a")
		r.want(tc.name, tc.want...)
	}
}

// TestTokensFlyAlone has pods of one account run the plugin for each: their tokens
// differ.
func TestTokensFlyAlone(t *testing.T) {
	p := valid("plug")
	p.TokenAttributes = attributes()
	r := newRig(t, nil, p)
	r.takes = time.Second
	r.ask(0, "a", "quay.io/a")
	r.ask(0, "a", "quay.io/a")
	r.ask(0, "b", "quay.io/a")
	r.want("", "0s plug quay.io/a by ns/robot(1) for registry in Pod a(u-a) map[]", "0s plug quay.io/a by ns/robot(1) for registry in Pod b(u-b) map[]",
		"1s a: [u:p of ns/robot(1)]", "1s a: [u:p of ns/robot(1)]", "1s b: [u:p of ns/robot(1)]")
}
