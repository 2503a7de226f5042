package facade

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Webhooks call webhooks, away from the API's loop. The errors say that no answer came.
type Webhooks interface {
	// Call calls an admission webhook.
	Call(ctx context.Context, call *apiserver.WebhookCall) (*admissionv1.AdmissionResponse, error)
	// Convert has a definition's webhook convert custom resources. What it answers is
	// checked by who asks.
	Convert(ctx context.Context, hook *apiextensionsv1.WebhookConversion, ask *apiextensionsv1.ConversionReview) (*apiextensionsv1.ConversionResponse, error)
}

// maxAttempts is how often a request is made again because what webhooks were asked
// about has changed meanwhile.
const maxAttempts = 10

// errRestless is the answer to a request that never saw the same twice.
var errRestless = errors.New("the object and its webhooks keep changing")

// callWebhooks calls what a request wants, all at once, and keeps the answers.
func (f *Facade) callWebhooks(ctx context.Context, calls *apiserver.WebhookCalls) {
	answers := make([]apiserver.WebhookAnswer, len(calls.Wanted))
	var wg sync.WaitGroup
	for i, call := range calls.Wanted {
		wg.Go(func() { answers[i].Response, answers[i].Err = f.o.Webhooks.Call(ctx, call) })
	}
	wg.Wait()
	for i, call := range calls.Wanted {
		calls.Answer(call, answers[i])
	}
	f.convertWanted(ctx, calls)
}

// HTTPWebhooks call webhooks over HTTPS, as kube-apiserver does. Services of a simulated
// cluster can't be reached by sockets.
type HTTPWebhooks struct {
	// Transport, if set, is the way to webhooks in the place of sockets. Services are
	// called by it, too, at name.namespace.svc, whether or not they have endpoints.
	Transport http.RoundTripper
}

// maxAnswer bounds a webhook's answer.
const maxAnswer = 3 << 20

// Call implements Webhooks.
func (w HTTPWebhooks) Call(ctx context.Context, call *apiserver.WebhookCall) (*admissionv1.AdmissionResponse, error) {
	if t := call.Hook.TimeoutSeconds; t != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(*t)*time.Second)
		defer cancel()
	}
	review, err := w.ask(ctx, call)
	if err != nil {
		return nil, fmt.Errorf("failed to call webhook: %w", err)
	}
	switch r := review.Response; {
	case r == nil:
		return nil, errors.New("received invalid webhook response: webhook response was absent")
	case r.UID != call.Review.Request.UID:
		return nil, fmt.Errorf("received invalid webhook response: expected response.uid=%q, got %q", call.Review.Request.UID, r.UID)
	case len(r.Patch) > 0 && (r.PatchType == nil || *r.PatchType != admissionv1.PatchTypeJSONPatch):
		return nil, errors.New("received invalid webhook response: webhook returned response.patch but not response.patchType")
	default:
		return r, nil
	}
}

// ask sends a review to its webhook and returns what comes back.
func (w HTTPWebhooks) ask(ctx context.Context, call *apiserver.WebhookCall) (*admissionv1.AdmissionReview, error) {
	to, err := addressOf(call.Hook.ClientConfig)
	if err != nil {
		return nil, err
	}
	if t := call.Hook.TimeoutSeconds; t != nil {
		q := to.Query()
		q.Set("timeout", strconv.Itoa(int(*t))+"s")
		to.RawQuery = q.Encode()
	}
	if call.Unreachable != "" && w.Transport == nil {
		return nil, &url.Error{Op: "Post", URL: to.String(), Err: errors.New(call.Unreachable)}
	}
	sent, review := *call.Review, &admissionv1.AdmissionReview{}
	if !slices.Contains(call.Hook.AdmissionReviewVersions, "v1") {
		sent.APIVersion = "admission.k8s.io/v1beta1" // says the same
	}
	return review, w.post(ctx, to.String(), call.Hook.ClientConfig.CABundle, &sent, review)
}

// post sends a review to a webhook and reads what comes back.
func (w HTTPWebhooks) post(ctx context.Context, to string, ca []byte, review, answer any) error {
	body, err := json.Marshal(review)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	client, err := w.clientOf(ca)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("an error on the server (%q) has prevented the request from succeeding", string(bytes.TrimSpace(data)))
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("could not decode the answer: %w", err)
	}
	return nil
}

// addressOf is where a webhook is.
func addressOf(c admissionregistrationv1.WebhookClientConfig) (*url.URL, error) {
	to := &url.URL{Scheme: "https"}
	switch {
	case c.URL != nil:
		return url.Parse(*c.URL)
	case c.Service != nil:
		port := int32(443)
		if c.Service.Port != nil {
			port = *c.Service.Port
		}
		to.Host, to.Path = fmt.Sprintf("%s.%s.svc:%d", c.Service.Name, c.Service.Namespace, port), "/"
		if c.Service.Path != nil {
			to.Path = *c.Service.Path
		}
	}
	return to, nil
}

// clientOf is a client that trusts whom the webhook's configuration says.
func (w HTTPWebhooks) clientOf(ca []byte) (*http.Client, error) {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if w.Transport != nil {
		return &http.Client{Transport: w.Transport, CheckRedirect: stay}, nil
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("unable to load root certificates: unable to parse bytes as PEM block")
		}
	}
	return &http.Client{
		Transport: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true}, CheckRedirect: stay,
	}, nil
}
