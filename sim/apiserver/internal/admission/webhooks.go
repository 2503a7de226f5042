package admission

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/policy"
)

// A webhook can't be called while the API's loop waits. So a request that needs one ends
// with ErrCalls before anything is stored; who made it calls, away from the loop, and
// makes the request again with the answers. An answer is good for what was asked: if the
// object, or the webhook's configuration, is another by then, it is asked again. What
// nobody can call for (the cluster's own controllers) goes by without webhooks.

// ErrCalls says that webhooks are to be called: see Calls.Wanted.
var ErrCalls = errors.New("webhooks are to be called")

// Calls are the calls of webhooks that one request takes. It is for one request, and for
// one goroutine at a time.
type Calls struct {
	// Wanted are those that the last attempt lacked.
	Wanted            []*Call
	WantedConversions []*Conversion
	answers           map[string]Answer
	conversions       map[string]converted
	drawn             []string // names and UIDs, which another attempt draws again
	next              int
}

// Call is one call of a webhook.
type Call struct {
	Hook   admissionregistrationv1.MutatingWebhook
	Review *admissionv1.AdmissionReview
	// Unreachable, if not "", is why it can't be called.
	Unreachable string
	key         string
}

// Answer is what came of a call.
type Answer struct {
	Response *admissionv1.AdmissionResponse
	Err      error // no answer
}

// Begin begins an attempt.
func (c *Calls) Begin() { c.Wanted, c.WantedConversions, c.next = nil, nil, 0 }

// Answer keeps the answer to a call for the next attempt.
func (c *Calls) Answer(call *Call, a Answer) {
	if c.answers == nil {
		c.answers = map[string]Answer{}
	}
	c.answers[call.key] = a
}

// Draw returns what an earlier attempt has drawn in this place, or draws.
func (c *Calls) Draw(draw func() string) string {
	if c.next == len(c.drawn) {
		c.drawn = append(c.drawn, draw())
	}
	c.next++
	return c.drawn[c.next-1]
}

// webhooks are the plugins MutatingAdmissionWebhook and ValidatingAdmissionWebhook
// (k8s.io/apiserver, pkg/admission/plugin/webhook).
type webhooks struct {
	cluster    Cluster
	conditions map[string]compiled[*policy.Conditions]
}

// hook is a webhook with where it is configured.
type hook struct {
	admissionregistrationv1.MutatingWebhook
	configuration, version string
}

func (h *hook) key() string { return h.configuration + "/" + h.Name }

// mutate asks each webhook in turn, by the names of configurations.
func (w *webhooks) mutate(r *Request) error {
	var hooks []hook
	for _, c := range sorted[*admissionregistrationv1.MutatingWebhookConfiguration](w.cluster, kinds.MutatingWebhookConfiguration) {
		for _, h := range c.Webhooks {
			hooks = append(hooks, hook{h, "mutating/" + c.Name, c.ResourceVersion})
		}
	}
	last := -1 // of the hooks that have changed the object
	for i := range hooks {
		changed, err := w.mutateBy(r, &hooks[i])
		if err != nil {
			return err
		}
		if changed {
			last = i
		}
	}
	// Who asks for it sees once more what others have made of the object since
	// (webhook/mutating/reinvocationcontext.go).
	for i := 0; i < last; i++ {
		if p := hooks[i].ReinvocationPolicy; p == nil || *p != admissionregistrationv1.IfNeededReinvocationPolicy {
			continue
		}
		if _, err := w.mutateBy(r, &hooks[i]); err != nil {
			return err
		}
	}
	return nil
}

// mutateBy has a webhook change the object, if it is asked about such.
func (w *webhooks) mutateBy(r *Request, h *hook) (changed bool, err error) {
	answer, err := w.ask(r, h)
	if err != nil {
		return false, err
	}
	if answer == nil {
		if wanted(r) { // what comes after sees what this one makes
			return false, ErrCalls
		}
		return false, nil
	}
	was, err := rawOf(r.Object, true)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	if err := patchObject(r, h, answer); err != nil {
		return false, err
	}
	is, err := rawOf(r.Object, true)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	return !bytes.Equal(was, is), nil
}

// validate asks all webhooks at once.
func (w *webhooks) validate(r *Request) error {
	var first error
	for _, c := range sorted[*admissionregistrationv1.ValidatingWebhookConfiguration](w.cluster, kinds.ValidatingWebhookConfiguration) {
		for _, v := range c.Webhooks {
			_, err := w.ask(r, &hook{kinds.MutatingForm(v), "validating/" + c.Name, c.ResourceVersion})
			if first == nil {
				first = err
			}
		}
	}
	if first == nil && wanted(r) {
		return ErrCalls
	}
	return first
}

// wanted reports whether calls are to be made before a request is decided. Components of the
// cluster itself have nobody who would make them.
func wanted(r *Request) bool {
	return r.Caller != nil && r.Caller.Calls != nil && len(r.Caller.Calls.Wanted) > 0
}

// ask returns a webhook's answer to a request. Nil: it isn't asked about such, its
// failure is ignored, or it is to be called.
func (w *webhooks) ask(r *Request, h *hook) (*admissionv1.AdmissionResponse, error) {
	if exempt.Has(r.Kind.Kind) || r.Caller == nil || r.Caller.Calls == nil {
		return nil, nil
	}
	in := inputOf(w.cluster, r)
	if !slices.ContainsFunc(h.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool { return policy.MatchesRule(&rule, in) }) {
		return nil, nil
	}
	failed := func(err error) (*admissionv1.AdmissionResponse, error) {
		if ignores(h.FailurePolicy) {
			return nil, nil
		}
		return nil, apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: %w", h.Name, err))
	}
	matches, err := policy.MatchesSelectors(h.NamespaceSelector, h.ObjectSelector, in)
	if err == nil && matches && len(h.MatchConditions) > 0 {
		var c *policy.Conditions
		if c, err = compiledOf(w.conditions, h.key(), h.version, func() (*policy.Conditions, error) {
			return policy.NewConditions(h.MatchConditions, h.FailurePolicy, h.Name)
		}); err == nil {
			matches, err = c.Match(in)
		}
		if err != nil {
			return nil, apierrors.NewForbidden(r.Kind.Asked().GroupResource(), Name(subject(r)), err)
		}
	}
	if err != nil {
		return failed(err)
	}
	if !matches {
		return nil, nil
	}
	call, err := w.call(r, h, in)
	if err != nil {
		return failed(err)
	}
	a, ok := r.Caller.Calls.answers[call.key]
	if !ok {
		r.Caller.Calls.Wanted = append(r.Caller.Calls.Wanted, call)
		return nil, nil
	}
	if a.Err != nil {
		return failed(a.Err)
	}
	for _, text := range a.Response.Warnings {
		r.Warn(text)
	}
	for k, v := range a.Response.AuditAnnotations { //drydock:unordered each has a key of its own
		r.Audit(h.Name+"/"+k, v)
	}
	if !a.Response.Allowed {
		return nil, webhookerrors.ToStatusErr(h.Name, a.Response.Result)
	}
	return a.Response, nil
}

// call makes the call of a webhook. Its key is what is asked, but for when and as whom.
func (w *webhooks) call(r *Request, h *hook, in *policy.Input) (*Call, error) {
	review := in.Review()
	var err error
	if review.Request.Object.Raw, err = rawOf(r.Object, false); err != nil {
		return nil, err
	}
	if review.Request.OldObject.Raw, err = rawOf(r.Old, false); err != nil {
		return nil, err
	}
	object, err := rawOf(r.Object, true)
	if err != nil {
		return nil, err
	}
	version := ""
	if r.Old != nil {
		version = r.Old.GetResourceVersion()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s\n%s\n%v\n%s", h.key(), h.version, r.Operation, r.Subresource, version, r.DryRun, object))
	key := base64.RawStdEncoding.EncodeToString(sum[:])
	review.Request.UID = w.cluster.NewUID()
	call := &Call{Hook: h.MutatingWebhook, Review: review, key: key}
	if s := h.ClientConfig.Service; s != nil {
		call.Unreachable = fmt.Sprintf("service %q not found", s.Name)
		if _, ok := w.cluster.Lookup(kinds.Service, s.Namespace, s.Name).(*v1.Service); ok {
			call.Unreachable = fmt.Sprintf("no endpoints available for service %q", s.Name)
		}
	}
	return call, nil
}

// rawOf is an object's JSON; without what the server's time is in, to compare.
func rawOf(obj kind.Object, comparable bool) ([]byte, error) {
	if obj == nil {
		return nil, nil
	}
	if comparable {
		obj = obj.DeepCopyObject().(kind.Object)
		obj.SetManagedFields(nil)
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("could not create admission objects: %w", err)
	}
	return data, nil
}

// patchObject makes of the request's object what a webhook wants.
func patchObject(r *Request, h *hook, a *admissionv1.AdmissionResponse) error {
	if len(a.Patch) == 0 || r.Object == nil {
		return nil
	}
	failed := func(err error) error { return apierrors.NewInternalError(err) }
	steps, err := jsonpatch.DecodePatch(a.Patch)
	if err != nil {
		return failed(err)
	}
	was, err := rawOf(r.Object, false)
	if err != nil {
		return failed(err)
	}
	is, err := steps.Apply(was)
	if err != nil {
		return failed(err)
	}
	made := r.Kind.New()
	if err := json.Unmarshal(is, made); err != nil {
		return failed(fmt.Errorf("webhook %q: %w", h.Name, err))
	}
	r.Kind.SetDefaults(made)
	replace(r.Object, made)
	return nil
}
