package facade

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// conversionTimeout is how long a conversion webhook may take
// (k8s.io/apiextensions-apiserver, pkg/apiserver/conversion/webhook_converter.go).
const conversionTimeout = 30 * time.Second

// convertWanted has a request's objects converted that an attempt lacked.
func (f *Facade) convertWanted(ctx context.Context, calls *apiserver.WebhookCalls) {
	type answer struct {
		objects []*unstructured.Unstructured
		err     error
	}
	answers := make([]answer, len(calls.WantedConversions))
	var wg sync.WaitGroup
	for i, v := range calls.WantedConversions {
		wg.Go(func() {
			answers[i].objects, answers[i].err = f.askForVersions(ctx, v.Hook, v.To, []*unstructured.Unstructured{v.Object})
		})
	}
	wg.Wait()
	for i, v := range calls.WantedConversions {
		if err := answers[i].err; err != nil {
			calls.Converted(v, nil, err)
			continue
		}
		calls.Converted(v, answers[i].objects[0], nil)
	}
}

// askForVersions asks a webhook for objects of one kind in another version.
func (f *Facade) askForVersions(ctx context.Context, hook *apiextensionsv1.WebhookConversion, to string, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	failed := func(err error) ([]*unstructured.Unstructured, error) {
		return nil, apiserver.ConversionFailed(objects[0], err)
	}
	if f.o.Webhooks == nil {
		return failed(errors.New("nobody calls webhooks here"))
	}
	if !slices.Contains(hook.ConversionReviewVersions, "v1") && !slices.Contains(hook.ConversionReviewVersions, "v1beta1") {
		return nil, errors.New("no supported conversion review versions")
	}
	ask := &apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "ConversionReview"},
		Request:  &apiextensionsv1.ConversionRequest{DesiredAPIVersion: to},
	}
	var names []string
	for _, o := range objects {
		data, err := o.MarshalJSON()
		if err != nil {
			return failed(err)
		}
		ask.Request.Objects = append(ask.Request.Objects, runtime.RawExtension{Raw: data})
		names = append(names, string(data))
	}
	ask.Request.UID = uidOf(append(names, to))
	ctx, cancel := context.WithTimeout(ctx, conversionTimeout)
	defer cancel()
	r, err := f.o.Webhooks.Convert(ctx, hook, ask)
	switch {
	case err != nil:
		return failed(err)
	case r == nil:
		return failed(errors.New("no response provided"))
	case r.UID != ask.Request.UID:
		return failed(fmt.Errorf("expected response.uid=%q, got %q", ask.Request.UID, r.UID))
	case r.Result.Status != metav1.StatusSuccess && r.Result.Message != "":
		return failed(errors.New(r.Result.Message))
	case r.Result.Status != metav1.StatusSuccess:
		return failed(fmt.Errorf("response.result.status was '%s', not 'Success'", r.Result.Status))
	case len(r.ConvertedObjects) != len(objects):
		return nil, fmt.Errorf("conversion webhook for %v returned %d objects, expected %d", objects[0].GroupVersionKind(), len(r.ConvertedObjects), len(objects))
	}
	out := make([]*unstructured.Unstructured, len(objects))
	for i, raw := range r.ConvertedObjects {
		out[i] = &unstructured.Unstructured{}
		if raw.Object != nil {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(raw.Object)
			if err != nil {
				return failed(err)
			}
			out[i].Object = content
			continue
		}
		if err := out[i].UnmarshalJSON(raw.Raw); err != nil {
			return nil, fmt.Errorf("conversion webhook for %v returned invalid converted object at index %v: %w", objects[0].GroupVersionKind(), i, err)
		}
	}
	return out, nil
}

// uidOf names a request by what it asks for: chance would make runs differ.
func uidOf(what []string) types.UID {
	a, b := loop.Hash(0, what), loop.Hash(1, what)
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", uint32(a>>32), uint16(a>>16), a&0xfff, b>>48&0xfff, b&0xffffffffffff))
}

// shown is the answer to a request, with what a webhook converts in the version that was
// asked for. Until now that is as it is stored, and shared with the store.
func (s *storage) shown(ctx context.Context, out runtime.Object, err error) (runtime.Object, error) {
	if err != nil || s.row.Custom == nil || s.row.Custom.Hook == nil {
		return out, err
	}
	var objects []*unstructured.Unstructured
	list, isList := out.(*unstructured.UnstructuredList)
	one, isOne := out.(*unstructured.Unstructured)
	switch {
	case isList:
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	case isOne:
		objects = append(objects, one)
	}
	var stored []*unstructured.Unstructured
	var at []int
	for i, o := range objects {
		if o.GetAPIVersion() != s.row.APIVersion() {
			stored, at = append(stored, o), append(at, i)
		}
	}
	if len(stored) == 0 {
		return out, nil
	}
	answers, err := s.f.askForVersions(ctx, s.row.Custom.Hook, s.row.APIVersion(), stored)
	if err != nil {
		return nil, unexplained(err)
	}
	for i, answer := range answers {
		made, err := s.row.Custom.Adopt(stored[i], answer)
		if err != nil {
			return nil, unexplained(err)
		}
		if isOne {
			return made, nil
		}
		list.Items[at[i]] = *made.(*unstructured.Unstructured)
	}
	return out, nil
}

// Convert implements Webhooks.
func (w HTTPWebhooks) Convert(ctx context.Context, hook *apiextensionsv1.WebhookConversion, ask *apiextensionsv1.ConversionReview) (*apiextensionsv1.ConversionResponse, error) {
	to, err := conversionAddress(hook.ClientConfig)
	if err != nil {
		return nil, err
	}
	if s := hook.ClientConfig.Service; s != nil && w.Transport == nil {
		return nil, &url.Error{Op: "Post", URL: to.String(), Err: fmt.Errorf("service %q can't be reached", s.Name)}
	}
	sent := *ask
	if !slices.Contains(hook.ConversionReviewVersions, "v1") {
		sent.APIVersion = "apiextensions.k8s.io/v1beta1" // says the same
	}
	review := &apiextensionsv1.ConversionReview{}
	if err := w.post(ctx, to.String(), hook.ClientConfig.CABundle, &sent, review); err != nil {
		return nil, err
	}
	if have := review.GroupVersionKind(); have.GroupVersion().String() != sent.APIVersion || have.Kind != sent.Kind {
		return nil, fmt.Errorf("expected webhook response of %v, got %v", sent.GroupVersionKind(), have)
	}
	if review.Response != nil && sent.APIVersion != ask.APIVersion {
		review.Response.UID = ask.Request.UID // is not looked at there
	}
	return review.Response, nil
}

// conversionAddress is where a conversion webhook is.
func conversionAddress(c *apiextensionsv1.WebhookClientConfig) (*url.URL, error) {
	out := admissionregistrationv1.WebhookClientConfig{URL: c.URL}
	if s := c.Service; s != nil {
		out.Service = &admissionregistrationv1.ServiceReference{Namespace: s.Namespace, Name: s.Name, Path: s.Path, Port: s.Port}
	}
	to, err := addressOf(out)
	if err != nil {
		return nil, err
	}
	q := to.Query()
	q.Set("timeout", strconv.Itoa(int(conversionTimeout/time.Second))+"s")
	to.RawQuery = q.Encode()
	return to, nil
}
