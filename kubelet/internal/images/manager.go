package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/distribution/reference"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/credentialprovider"
	"github.com/drydock-sim/drydock/kubelet/internal/metrics"
)

// ImageService is what the manager needs of the CRI's image service.
type ImageService interface {
	ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error)
	PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, config *runtimeapi.PodSandboxConfig) (string, error)
}

// EventRecorder takes Kubernetes events.
type EventRecorder interface {
	Event(ref *v1.ObjectReference, eventtype, reason, message string)
}

// PullManager remembers pulls and their credentials (upstream's
// images/pullmanager).
type PullManager interface {
	// MustAttemptImagePull reports whether a pod may use an image that is present
	// only after pulling it; credentials gives what the pod has for the image, and its
	// error is returned.
	MustAttemptImagePull(image, imageRef string, credentials func() ([]kubeletconfig.ImagePullSecret, *kubeletconfig.ImagePullServiceAccount, error)) (bool, error)
	RecordPullIntent(image string) error
	RecordImagePulled(image, imageRef string, with *kubeletconfig.ImagePullCredentials)
	RecordImagePullFailed(image string)
}

// Keyring finds the credentials for a pod's image, by its repository in full. It may
// wait for plugins.
type Keyring interface {
	Lookup(ctx context.Context, pod *v1.Pod, repository string, pullSecrets []v1.Secret) ([]credentialprovider.Credentials, error)
}

// Options are what a Manager is made of.
type Options struct {
	Loop         *loop.Loop
	ImageService ImageService
	Recorder     EventRecorder
	// Parallel lets pulls run side by side (serializeImagePulls: false);
	// otherwise one runs at a time, first come first served.
	Parallel bool
	// MaxParallel bounds parallel pulls; below 1 means no bound.
	MaxParallel int
	// QPS and Burst limit the pulls as a token bucket; a QPS of 0 means no
	// limit. A pull that finds no token fails.
	QPS, Burst int32
	// BackoffBase and BackoffMax are the pull back-off's; 0 means 10 s and
	// 5 min.
	BackoffBase, BackoffMax time.Duration
	// Pulls is optional; nil means that every pod may use every image that is
	// present.
	Pulls PullManager
	// Metrics counts; nil: nobody does.
	Metrics *metrics.Kubelet
	// GateOff tells that the gate KubeletEnsureSecretPulledImages is off; Pulls
	// is nil then.
	GateOff bool
	// NoAnnotations: the runtime does not look at the annotations of an image's
	// spec, and is not told of them.
	NoAnnotations bool
	// Keyring is optional; nil means that pulls are anonymous.
	Keyring Keyring
}

// Manager brings images onto the machine.
type Manager struct {
	o       Options
	backoff *kubecontainer.Backoff
	slots   *loop.Semaphore // nil: no bound
	bucket  *bucket         // nil: no limit
	last    map[uint64]string
	// present is the last message of an image that was present: pods of one
	// kind come together, and each event keeps its message.
	present string
	// lastSpec is the last one without annotations.
	lastSpec *runtimeapi.ImageSpec
}

// New returns a Manager.
func New(o Options) *Manager {
	o.BackoffBase = cmp.Or(o.BackoffBase, kubecontainer.BackoffBase)
	o.BackoffMax = cmp.Or(o.BackoffMax, kubecontainer.BackoffMax)
	m := &Manager{o: o, backoff: kubecontainer.NewBackoff(o.BackoffBase, o.BackoffMax)}
	switch {
	case !o.Parallel:
		m.slots = loop.NewSemaphore(1)
	case o.MaxParallel >= 1:
		m.slots = loop.NewSemaphore(o.MaxParallel)
	}
	if o.QPS > 0 {
		m.bucket = newBucket(o.QPS, max(o.Burst, 1))
	}
	return m
}

// Request asks for an image.
type Request struct {
	// Ref is the object of events: a container, or a pod for image volumes.
	Ref         *v1.ObjectReference
	Pod         *v1.Pod
	Image       string // as in the pod's spec
	Policy      v1.PullPolicy
	PullSecrets []v1.Secret
	// Sandbox tells what the runtime is told of the pod's sandbox; nil: nothing.
	Sandbox interface {
		Config() *runtimeapi.PodSandboxConfig
		// Annotations are those of Config.
		Annotations() map[string]string
	}
}

// EnsureImageExists returns the reference (the image ID) of the image that is
// asked for, pulling it if the policy says so. On failure it returns the short
// reason as the error and the message that belongs to it (upstream
// images/image_manager.go).
func (m *Manager) EnsureImageExists(ctx context.Context, r Request) (imageRef, message string, err error) {
	var present, required *bool
	defer func() { m.o.Metrics.Image(strings.ToLower(string(r.Policy)), present, required) }()
	image, perr := ApplyDefaultTag(r.Image)
	if perr != nil {
		msg := fmt.Sprintf("Failed to apply default image tag %q: %v", r.Image, perr)
		m.event(r, v1.EventTypeWarning, "InspectFailed", msg)
		return "", msg, kubecontainer.ErrInvalidImageName
	}
	spec := m.spec(r, image)
	look := lookup{ctx: ctx, r: &r, keyring: m.o.Keyring}
	if r.Policy != v1.PullAlways {
		ref, msg, done, err := m.usePresent(ctx, r, spec, &look)
		if !errors.Is(err, kubecontainer.ErrImageInspect) {
			present = new(ref != "" || look.err != nil)
		}
		if done {
			if ref != "" {
				required = new(false)
			}
			return ref, msg, err
		}
	}
	required = new(true)
	return m.pull(ctx, r, spec, &look)
}

// spec names an image to the runtime. One that does not look at annotations gets
// the same for all pods.
func (m *Manager) spec(r Request, image string) *runtimeapi.ImageSpec {
	if m.o.NoAnnotations {
		if m.lastSpec.GetImage() != image {
			m.lastSpec = &runtimeapi.ImageSpec{Image: image}
		}
		return m.lastSpec
	}
	spec := &runtimeapi.ImageSpec{Image: image}
	if r.Sandbox != nil {
		spec.Annotations = r.Sandbox.Annotations()
	}
	return spec
}

// usePresent looks for the image on the machine; done is false if it has to
// be pulled.
func (m *Manager) usePresent(ctx context.Context, r Request, spec *runtimeapi.ImageSpec, look *lookup) (ref, message string, done bool, err error) {
	resp, serr := m.o.ImageService.ImageStatus(ctx, spec, false)
	if serr != nil {
		// The name is that of the image found, so none.
		msg := fmt.Sprintf("Failed to inspect image %q: %v", "", serr)
		m.event(r, v1.EventTypeWarning, "InspectFailed", msg)
		return "", msg, true, kubecontainer.ErrImageInspect
	}
	ref = resp.GetImage().GetId()
	switch {
	case ref == "":
	case m.o.GateOff:
		m.event(r, v1.EventTypeNormal, "Pulled", m.presentMessage(r.Image, ""))
		return ref, "", true, nil
	default:
		must := false
		if m.o.Pulls != nil {
			if must, err = m.o.Pulls.MustAttemptImagePull(r.Image, ref, look.owned); err != nil {
				return "", err.Error(), true, err
			}
		}
		if !must {
			m.event(r, v1.EventTypeNormal, "Pulled", m.presentMessage(r.Image, " and can be accessed by the pod"))
			return ref, "", true, nil
		}
	}
	if r.Policy == v1.PullNever {
		msg := fmt.Sprintf("Container image %q is not present with pull policy of Never", r.Image)
		m.event(r, v1.EventTypeWarning, "ErrImageNeverPull", msg)
		return "", msg, true, kubecontainer.ErrImageNeverPull
	}
	return ref, "", false, nil
}

// presentMessage is the same string for pods of one image that come together. end
// is the same throughout a manager's life.
func (m *Manager) presentMessage(image, end string) string {
	const before, after = "Container image \"", "\" already present on machine"
	if p := m.present; len(p) != len(before)+len(image)+len(after)+len(end) || p[len(before):len(before)+len(image)] != image {
		m.present = before + image + after + end
	}
	return m.present
}

// pull pulls the image unless that is in back-off, and has it recorded.
func (m *Manager) pull(ctx context.Context, r Request, spec *runtimeapi.ImageSpec, look *lookup) (ref, message string, err error) {
	creds, err := look.credentials()
	if err != nil {
		return "", err.Error(), err
	}
	if m.o.Pulls == nil {
		ref, _, message, err = m.tryPull(ctx, r, spec, creds)
		return ref, message, err
	}
	if err := m.o.Pulls.RecordPullIntent(r.Image); err != nil {
		return "", fmt.Sprintf("Failed to record image pull intent for container image %q: %v", r.Image, err), err
	}
	ref, with, message, err := m.tryPull(ctx, r, spec, creds)
	if err != nil {
		m.o.Pulls.RecordImagePullFailed(r.Image)
	} else {
		m.o.Pulls.RecordImagePulled(r.Image, ref, recorded(with))
	}
	return ref, message, err
}

// recorded is what is remembered of a pull with those credentials.
func recorded(with credentialprovider.Credentials) *kubeletconfig.ImagePullCredentials {
	switch {
	case with.Secret != nil:
		return &kubeletconfig.ImagePullCredentials{KubernetesSecrets: []kubeletconfig.ImagePullSecret{*with.Secret}}
	case with.ServiceAccount != nil:
		return &kubeletconfig.ImagePullCredentials{KubernetesServiceAccounts: []kubeletconfig.ImagePullServiceAccount{*with.ServiceAccount}}
	}
	return &kubeletconfig.ImagePullCredentials{NodePodsAccessible: true}
}

// lookup looks for the credentials of one request once, and only when they are asked
// for: a plugin may run for them.
type lookup struct {
	ctx     context.Context
	r       *Request
	keyring Keyring // nil: pulls are anonymous
	done    bool
	creds   []credentialprovider.Credentials
	err     error
}

// credentials are those that a pull of the image may be tried with.
func (l *lookup) credentials() ([]credentialprovider.Credentials, error) {
	if l.done || l.keyring == nil {
		return l.creds, l.err
	}
	l.done = true
	named, err := reference.ParseNormalizedNamed(l.r.Image)
	if err != nil {
		l.err = err
		return nil, err
	}
	l.creds, l.err = l.keyring.Lookup(l.ctx, l.r.Pod, named.Name(), l.r.PullSecrets)
	return l.creds, l.err
}

// owned are the pod's pull secrets that are for the image, and the service account
// whose token a plugin got. Tokens differ by audience, which nobody looks at here, so
// one account is enough.
func (l *lookup) owned() (secrets []kubeletconfig.ImagePullSecret, account *kubeletconfig.ImagePullServiceAccount, err error) {
	creds, err := l.credentials()
	if err != nil {
		return nil, nil, err
	}
	for i := range creds {
		switch c := &creds[i]; {
		case c.Secret != nil:
			secrets = append(secrets, *c.Secret)
		case c.ServiceAccount != nil && account == nil:
			account = c.ServiceAccount
		}
	}
	return secrets, account, nil
}

// tryPull pulls with what of creds works, which it returns.
func (m *Manager) tryPull(ctx context.Context, r Request, spec *runtimeapi.ImageSpec, creds []credentialprovider.Credentials) (ref string, with credentialprovider.Credentials, message string, err error) {
	key := kubecontainer.ImagePullKey(r.Pod, r.Image)
	if m.backoff.InBackOffSinceUpdate(key, m.o.Loop.Now()) {
		msg := fmt.Sprintf("Back-off pulling image %q", r.Image)
		m.event(r, v1.EventTypeNormal, "BackOff", msg)
		if last, ok := m.last[key]; ok {
			msg += ": " + last
		}
		return "", with, msg, kubecontainer.ErrImagePullBackOff
	}
	start := m.o.Loop.Now()
	m.event(r, v1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", r.Image))
	ref, with, took, perr := m.queue(ctx, r, spec, creds)
	if perr != nil {
		text := stripUnknown(perr)
		m.event(r, v1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %s", r.Image, text))
		now := m.o.Loop.Now()
		m.backoff.Next(key, now, now)
		msg, reason := explain(r.Image, text)
		if m.last == nil {
			m.last = map[uint64]string{}
		}
		m.last[key] = reason.Error() + ": " + msg
		return "", with, msg, reason
	}
	delete(m.last, key)
	var size uint64
	if resp, serr := m.o.ImageService.ImageStatus(ctx, spec, false); serr == nil {
		size = resp.GetImage().GetSize()
	}
	m.event(r, v1.EventTypeNormal, "Pulled", fmt.Sprintf("Successfully pulled image %q in %v (%v including waiting). Image size: %d bytes.",
		r.Image, took.Truncate(time.Millisecond), m.o.Loop.Since(start).Truncate(time.Millisecond), size))
	m.collect()
	return ref, with, "", nil
}

// collect forgets the series that have expired, and the errors of those.
func (m *Manager) collect() {
	m.backoff.GC(m.o.Loop.Now())
	//drydock:unordered each entry is judged alone
	for key := range m.last {
		if !m.backoff.Has(key) {
			delete(m.last, key)
		}
	}
}

// queue waits for a slot and pulls; took is without the wait.
func (m *Manager) queue(ctx context.Context, r Request, spec *runtimeapi.ImageSpec, creds []credentialprovider.Credentials) (ref string, with credentialprovider.Credentials, took time.Duration, err error) {
	if m.slots != nil {
		if err := m.slots.Acquire(ctx); err != nil {
			return "", with, 0, err
		}
		defer m.slots.Release()
	}
	start := m.o.Loop.Now()
	if len(creds) == 0 {
		creds = []credentialprovider.Credentials{{}} // none
	}
	var sandbox *runtimeapi.PodSandboxConfig
	if r.Sandbox != nil {
		sandbox = r.Sandbox.Config()
	}
	var errs []error
	for _, c := range creds {
		ref, err := m.pullOnce(ctx, spec, c.Auth, sandbox)
		if err == nil {
			return ref, c, m.o.Loop.Since(start), nil
		}
		errs = append(errs, err)
	}
	return "", with, 0, joined(errs)
}

// pullOnce is one call of the runtime's, if registryPullQPS allows it.
func (m *Manager) pullOnce(ctx context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, config *runtimeapi.PodSandboxConfig) (string, error) {
	if m.bucket != nil && !m.bucket.take(m.o.Loop.UnixNano()) {
		return "", errQPS
	}
	return m.o.ImageService.PullImage(ctx, spec, auth, config)
}

// stripUnknown is a pull error's text: a gRPC status of code Unknown shows its
// message only.
func stripUnknown(err error) string {
	if s, ok := grpcstatus.FromError(err); ok && s.Code() == codes.Unknown {
		return s.Message()
	}
	return err.Error()
}

// explain gives the reason and message of a pull error, in which runtimes mark
// two causes by a prefix.
func explain(image, text string) (string, error) {
	for _, c := range [...]struct {
		err   error
		cause string
	}{
		{kubecontainer.ErrRegistryUnavailable, "the registry is unavailable"},
		{kubecontainer.ErrSignatureValidation, "the signature validation failed"},
	} {
		if rest, ok := strings.CutPrefix(text, c.err.Error()); ok {
			return fmt.Sprintf("image pull failed for %s because %s%s", image, c.cause, rest), c.err
		}
	}
	return text, kubecontainer.ErrImagePull
}

// event records an event, if somebody takes them.
func (m *Manager) event(r Request, eventtype, reason, message string) {
	if m.o.Recorder != nil && r.Ref != nil {
		m.o.Recorder.Event(r.Ref, eventtype, reason, message)
	}
}
