package images

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/credentialprovider"
)

type fake struct {
	l         *loop.Loop
	present   map[string]bool
	statusErr error
	pullErr   error
	pullErrs  []error // before pullErr
	takes     time.Duration
	pulls     []string
	events    []string
}

func (f *fake) ImageStatus(ctx context.Context, s *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	if err := f.l.Yield(ctx); err != nil || f.statusErr != nil || !f.present[s.Image] {
		return &runtimeapi.ImageStatusResponse{}, errors.Join(err, f.statusErr)
	}
	return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: "id-of-" + s.Image, Size: 77}}, nil
}

func (f *fake) PullImage(ctx context.Context, s *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	f.pulls = append(f.pulls, fmt.Sprintf("%v %s %s", f.l.Since(loop.Epoch()).Round(time.Millisecond), s.Image, auth.GetUsername()))
	if err := f.l.Sleep(ctx, f.takes); err != nil {
		return "", err
	}
	err := f.pullErr
	if len(f.pullErrs) > 0 {
		err, f.pullErrs = f.pullErrs[0], f.pullErrs[1:]
	}
	if err != nil {
		return "", err
	}
	f.present[s.Image] = true
	return "id-of-" + s.Image, nil
}

func (f *fake) Event(_ *v1.ObjectReference, eventtype, reason, message string) {
	f.events = append(f.events, eventtype[:1]+" "+reason+" "+message)
}

func setUp(t *testing.T, o Options) (*fake, *Manager) {
	l := loop.New(loop.Options{})
	t.Cleanup(l.Close)
	f := &fake{l: l, present: map[string]bool{}, takes: 1500 * time.Millisecond}
	o.Loop, o.ImageService, o.Recorder = l, f, f
	return f, New(o)
}

func pod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
}

func (f *fake) run(t *testing.T, until time.Duration) {
	t.Helper()
	if err := f.l.RunUntil(loop.Epoch().Add(until)); err != nil {
		t.Fatal(err)
	}
}

func TestEnsureImageExists(t *testing.T) {
	const img = "app:1"
	for _, tc := range []struct {
		name    string
		image   string
		policy  v1.PullPolicy
		present bool
		status  error
		pull    error
		ref     string
		err     error
		message string
		events  []string
	}{
		{name: "present", image: img, policy: v1.PullIfNotPresent, present: true, ref: "id-of-app:1",
			events: []string{`N Pulled Container image "app:1" already present on machine and can be accessed by the pod`}},
		{name: "present, always", image: img, policy: v1.PullAlways, present: true, ref: "id-of-app:1",
			events: []string{`N Pulling Pulling image "app:1"`, `N Pulled Successfully pulled image "app:1" in 1.5s (1.5s including waiting). Image size: 77 bytes.`}},
		{name: "absent", image: "app", policy: v1.PullIfNotPresent, ref: "id-of-app:latest",
			events: []string{`N Pulling Pulling image "app"`, `N Pulled Successfully pulled image "app" in 1.5s (1.5s including waiting). Image size: 77 bytes.`}},
		{name: "absent, never", image: img, policy: v1.PullNever, err: kubecontainer.ErrImageNeverPull, message: `Container image "app:1" is not present with pull policy of Never`,
			events: []string{`W ErrImageNeverPull Container image "app:1" is not present with pull policy of Never`}},
		{name: "status fails", image: img, policy: v1.PullNever, status: errors.New("boom"), err: kubecontainer.ErrImageInspect, message: `Failed to inspect image "": boom`,
			events: []string{`W InspectFailed Failed to inspect image "": boom`}},
		{name: "bad name", image: "a b", policy: v1.PullNever, err: kubecontainer.ErrInvalidImageName, message: `Failed to apply default image tag "a b": couldn't parse image name "a b": invalid reference format`,
			events: []string{`W InspectFailed Failed to apply default image tag "a b": couldn't parse image name "a b": invalid reference format`}},
		{name: "unknown error is stripped", image: img, policy: v1.PullAlways, pull: grpcstatus.Error(codes.Unknown, "no route"), err: kubecontainer.ErrImagePull, message: "no route",
			events: []string{`N Pulling Pulling image "app:1"`, `W Failed Failed to pull image "app:1": no route`}},
		{name: "other errors are not", image: img, policy: v1.PullAlways, pull: grpcstatus.Error(codes.NotFound, "gone"), err: kubecontainer.ErrImagePull, message: "rpc error: code = NotFound desc = gone",
			events: []string{`N Pulling Pulling image "app:1"`, `W Failed Failed to pull image "app:1": rpc error: code = NotFound desc = gone`}},
		{name: "registry unavailable", image: img, policy: v1.PullAlways, pull: grpcstatus.Error(codes.Unknown, "RegistryUnavailable: 503"), err: kubecontainer.ErrRegistryUnavailable,
			message: "image pull failed for app:1 because the registry is unavailable: 503",
			events:  []string{`N Pulling Pulling image "app:1"`, `W Failed Failed to pull image "app:1": RegistryUnavailable: 503`}},
		{name: "signature", image: img, policy: v1.PullAlways, pull: grpcstatus.Error(codes.Unknown, "SignatureValidationFailed"), err: kubecontainer.ErrSignatureValidation,
			message: "image pull failed for app:1 because the signature validation failed",
			events:  []string{`N Pulling Pulling image "app:1"`, `W Failed Failed to pull image "app:1": SignatureValidationFailed`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, m := setUp(t, Options{QPS: 5, Burst: 10})
			f.present[img], f.statusErr, f.pullErr = tc.present, tc.status, tc.pull
			f.l.Root().Go("pull", func(ctx context.Context) {
				ref, msg, err := m.EnsureImageExists(ctx, Request{Ref: &v1.ObjectReference{}, Pod: pod("p"), Image: tc.image, Policy: tc.policy})
				if ref != tc.ref || msg != tc.message || !errors.Is(err, tc.err) || err != nil && tc.err == nil {
					t.Errorf("%q %q %v", ref, msg, err)
				}
			})
			f.run(t, time.Minute)
			if got, want := strings.Join(f.events, "\n"), strings.Join(tc.events, "\n"); got != want {
				t.Errorf("events\n got %s\nwant %s", got, want)
			}
		})
	}
}

func TestPullsWaitForASlot(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    Options
		want string
	}{
		{"serial", Options{}, "0s 1.5s 3s"},
		{"parallel", Options{Parallel: true}, "0s 0s 0s"},
		{"two at a time", Options{Parallel: true, MaxParallel: 2}, "0s 0s 1.5s"},
	} {
		f, m := setUp(t, tc.o)
		for i := range 3 {
			f.l.Root().Go("pull", func(ctx context.Context) {
				_, _, _ = m.EnsureImageExists(ctx, Request{Ref: &v1.ObjectReference{}, Pod: pod(fmt.Sprint(i)), Image: "app:1", Policy: v1.PullAlways})
			})
		}
		f.run(t, time.Minute)
		var at []string
		for _, p := range f.pulls {
			at = append(at, strings.Fields(p)[0])
		}
		if got := strings.Join(at, " "); got != tc.want {
			t.Errorf("%s: pulls at %s", tc.name, got)
		}
		if last := f.events[len(f.events)-1]; tc.name == "serial" && !strings.Contains(last, "in 1.5s (4.5s including waiting)") {
			t.Errorf("%s", last)
		}
	}
}

func TestQPS(t *testing.T) {
	b := newBucket(5, 10)
	granted := 0
	for range 20 {
		if b.take(1e9) {
			granted++
		}
	}
	if granted != 10 {
		t.Errorf("burst of %d", granted)
	}
	if b.take(1e9+199e6) || !b.take(1e9+200e6) || b.take(1e9+200e6) {
		t.Error("a token comes back each 200 ms")
	}
	f, m := setUp(t, Options{QPS: 1, Burst: 1, Parallel: true})
	for i := range 2 {
		f.l.Root().Go("pull", func(ctx context.Context) {
			_, msg, err := m.EnsureImageExists(ctx, Request{Ref: &v1.ObjectReference{}, Pod: pod(fmt.Sprint(i)), Image: "app:1", Policy: v1.PullAlways})
			if (err != nil) != (i == 1) || i == 1 && msg != "pull QPS exceeded" {
				t.Errorf("pull %d: %q %v", i, msg, err)
			}
		})
	}
	f.run(t, time.Minute)
}

type ring []*runtimeapi.AuthConfig

func (r ring) Lookup(context.Context, *v1.Pod, string, []v1.Secret) (out []credentialprovider.Credentials, err error) {
	for i, a := range r {
		out = append(out, credentialprovider.Credentials{Auth: a, Secret: &kubeletconfig.ImagePullSecret{Name: fmt.Sprint("s", i)}})
	}
	return out, nil
}

func TestCredentialsAreTriedInOrder(t *testing.T) {
	f, m := setUp(t, Options{Keyring: ring{{Username: "a"}, {Username: "b"}}})
	f.pullErrs = []error{errors.New("denied")}
	f.l.Root().Go("pull", func(ctx context.Context) {
		if _, _, err := m.EnsureImageExists(ctx, Request{Ref: &v1.ObjectReference{}, Pod: pod("p"), Image: "app:1", Policy: v1.PullAlways}); err != nil {
			t.Error(err)
		}
	})
	f.run(t, time.Minute)
	if got, want := strings.Join(f.pulls, ", "), "0s app:1 a, 1.5s app:1 b"; got != want {
		t.Errorf("%s", got)
	}
}

// refuse lets no pod use what is there, unless it is told to, and writes down
// what it hears.
type refuse struct {
	told *[]string
	let  bool
}

func (r refuse) MustAttemptImagePull(_, _ string, credentials func() ([]kubeletconfig.ImagePullSecret, *kubeletconfig.ImagePullServiceAccount, error)) (bool, error) {
	_, _, err := credentials()
	return !r.let, err
}

func (r refuse) RecordPullIntent(image string) error {
	*r.told = append(*r.told, "intent "+image)
	return nil
}

func (r refuse) RecordImagePulled(image, ref string, with *kubeletconfig.ImagePullCredentials) {
	text := "pulled " + image + " as " + ref
	for _, s := range with.KubernetesSecrets {
		text += " with " + s.Name
	}
	for _, a := range with.KubernetesServiceAccounts {
		text += " as " + a.Name
	}
	if with.NodePodsAccessible {
		text += " for all"
	}
	*r.told = append(*r.told, text)
}

func (r refuse) RecordImagePullFailed(image string) { *r.told = append(*r.told, "failed "+image) }

func TestPullsAreRecorded(t *testing.T) {
	var told []string
	f, m := setUp(t, Options{Pulls: refuse{told: &told}, Keyring: ring{{Username: "a"}, {Username: "b"}}})
	f.pullErrs = []error{errors.New("denied"), errors.New("denied"), errors.New("denied")}
	f.l.Root().Go("pull", func(ctx context.Context) {
		req := Request{Ref: &v1.ObjectReference{}, Pod: pod("p"), Image: "app:1", Policy: v1.PullIfNotPresent}
		_, _, _ = m.EnsureImageExists(ctx, req)
		_, _, _ = m.EnsureImageExists(ctx, req) // in back-off
		_ = f.l.Sleep(ctx, 20*time.Second)
		if _, _, err := m.EnsureImageExists(ctx, req); err != nil {
			t.Error(err)
		}
	})
	f.run(t, time.Minute)
	want := "intent app:1, failed app:1, intent app:1, failed app:1, intent app:1, pulled app:1 as id-of-app:1 with s1"
	if got := strings.Join(told, ", "); got != want {
		t.Error(got)
	}
}

func TestImageThatThePodMayNotUse(t *testing.T) {
	f, m := setUp(t, Options{Pulls: refuse{told: new([]string)}})
	f.present["app:1"] = true
	f.l.Root().Go("pull", func(ctx context.Context) {
		req := Request{Ref: &v1.ObjectReference{}, Pod: pod("p"), Image: "app:1", Policy: v1.PullIfNotPresent}
		if _, _, err := m.EnsureImageExists(ctx, req); err != nil || len(f.pulls) != 1 {
			t.Errorf("%v %v", err, f.pulls)
		}
		req.Policy = v1.PullNever
		if _, _, err := m.EnsureImageExists(ctx, req); !errors.Is(err, kubecontainer.ErrImageNeverPull) {
			t.Error(err)
		}
	})
	f.run(t, time.Minute)
}

// counting is a keyring that counts how often it is asked.
type counting struct {
	n     *int
	creds []credentialprovider.Credentials
	err   error
}

func (c counting) Lookup(context.Context, *v1.Pod, string, []v1.Secret) ([]credentialprovider.Credentials, error) {
	*c.n++
	return c.creds, c.err
}

// TestWhatIsRecorded holds what is remembered of a pull, and that credentials are looked
// for once: a plugin may run for them.
func TestWhatIsRecorded(t *testing.T) {
	auth := &runtimeapi.AuthConfig{Username: "u"}
	account := &kubeletconfig.ImagePullServiceAccount{Name: "robot"}
	for _, tc := range []struct {
		name  string
		creds []credentialprovider.Credentials
		want  string
	}{
		{"anonymous", nil, "for all"},
		{"the node's", []credentialprovider.Credentials{{Auth: auth}}, "for all"},
		{"a secret's", []credentialprovider.Credentials{{Auth: auth, Secret: &kubeletconfig.ImagePullSecret{Name: "s"}}}, "with s"},
		{"an account's", []credentialprovider.Credentials{{Auth: auth, ServiceAccount: account}}, "as robot"},
	} {
		var told []string
		n := 0
		f, m := setUp(t, Options{Pulls: refuse{told: &told}, Keyring: counting{n: &n, creds: tc.creds}})
		f.present["app:1"] = true
		f.l.Root().Go("pull", func(ctx context.Context) {
			if _, _, err := m.EnsureImageExists(ctx, Request{Ref: &v1.ObjectReference{}, Pod: pod("p"), Image: "app:1", Policy: v1.PullIfNotPresent}); err != nil {
				t.Error(err)
			}
		})
		f.run(t, time.Minute)
		if got, want := strings.Join(told, ", "), "intent app:1, pulled app:1 as id-of-app:1 "+tc.want; got != want || n != 1 {
			t.Errorf("%s: %s; credentials were looked for %d times", tc.name, got, n)
		}
	}
}

// TestUnreadableCredentials: what is wrong with them is said, whatever the policy is.
func TestUnreadableCredentials(t *testing.T) {
	for _, policy := range []v1.PullPolicy{v1.PullAlways, v1.PullIfNotPresent, v1.PullNever} {
		bad := errors.New("unexpected end of JSON input")
		f, m := setUp(t, Options{Pulls: refuse{told: new([]string)}, Keyring: counting{n: new(int), err: bad}})
		f.present["app:1"] = true
		f.l.Root().Go("pull", func(ctx context.Context) {
			if ref, msg, err := m.EnsureImageExists(ctx, Request{Ref: &v1.ObjectReference{}, Pod: pod("p"), Image: "app:1", Policy: policy}); ref != "" || msg != bad.Error() || !errors.Is(err, bad) {
				t.Errorf("%s: %q %q %v", policy, ref, msg, err)
			}
		})
		f.run(t, time.Minute)
	}
}
