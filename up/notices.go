package up

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// noticePeriod is how often what is to be told of is handed on, by the machine's clock.
const noticePeriod = 500 * time.Millisecond

// notices hands on what is to be told of, until ctx ends.
func (c *Cluster) notices(ctx context.Context) {
	if c.o.Notice == nil {
		return
	}
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-time.After(noticePeriod):
		}
		var list []string
		take := func() { list = c.told.take(c.session.Notices()) }
		if err := c.pacer.Between(take); err != nil {
			take() // no loop runs any more
		}
		for _, text := range list {
			c.o.Notice(text)
		}
	}
}

// inertia notes, on the API's loop, what clients ask for that has no effect here, once each.
type inertia struct {
	load  bool
	said  map[string]bool
	texts []string
}

// take returns what has been noted since it was called last, after other notices.
func (n *inertia) take(others []string) []string {
	out := append(others, n.texts...)
	n.texts = nil
	return out
}

func (n *inertia) say(text string) {
	if !n.said[text] {
		n.said[text] = true
		n.texts = append(n.texts, text)
	}
}

// noteInert has what clients make looked at. The kinds left out are those of which there
// are many.
func noteInert(api *apiserver.Server, load bool) *inertia {
	n := &inertia{load: load, said: map[string]bool{}}
	api.OnChangeBut(func(c apiserver.Change) {
		if c.Type != watch.Deleted && api.Store().CallerName() != "" {
			n.look(api, c)
		}
	}, apiserver.KindPod, apiserver.KindEvent, apiserver.KindNode, apiserver.KindLease)
	return n
}

// look notes what has no effect in an object that a client has written.
func (n *inertia) look(api *apiserver.Server, c apiserver.Change) {
	if row := api.Store().Kinds().Find(c.Kind); row != nil && row.Inert.With(true, n.load) {
		n.say(fmt.Sprintf("stored, but nothing in a simulation acts on them: %s", row.Kind))
	}
	service := ""
	switch obj := c.New.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for _, h := range obj.Webhooks {
			service = serviceOf(service, h.ClientConfig)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for _, h := range obj.Webhooks {
			service = serviceOf(service, h.ClientConfig)
		}
	case *apiextensionsv1.CustomResourceDefinition:
		if conv := obj.Spec.Conversion; conv != nil && conv.Webhook != nil && conv.Webhook.ClientConfig != nil && conv.Webhook.ClientConfig.Service != nil {
			service = conv.Webhook.ClientConfig.Service.Namespace + "/" + conv.Webhook.ClientConfig.Service.Name
		}
	}
	if service != "" {
		n.say(fmt.Sprintf("%s %q: services can't be reached here, so that calls of webhooks behind %s fail: give them a url", c.Kind, c.New.GetName(), service))
	}
}

// serviceOf returns the service behind which a webhook is, or else the one that was found
// before.
func serviceOf(before string, c admissionregistrationv1.WebhookClientConfig) string {
	if c.Service == nil {
		return before
	}
	return c.Service.Namespace + "/" + c.Service.Name
}
