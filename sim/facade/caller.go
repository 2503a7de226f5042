package facade

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// caller keeps what admission says on the loop, until the answer is back: who gave up
// waiting must not be written to.
type caller struct {
	warnings    []string
	annotations [][2]string
}

// of is who makes a request, by the user that it was authenticated as, with what came of
// the webhooks that it takes.
func (c *caller) of(ctx context.Context, calls *apiserver.WebhookCalls) *apiserver.Caller {
	if calls != nil {
		calls.Begin()
	}
	out := &apiserver.Caller{
		Calls: calls,
		Warn:  func(text string) { c.warnings = append(c.warnings, text) },
		Audit: func(key, value string) { c.annotations = append(c.annotations, [2]string{key, value}) },
	}
	u, ok := request.UserFrom(ctx)
	if !ok {
		return out
	}
	out.User = authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for k, v := range u.GetExtra() {
		if out.User.Extra == nil {
			out.User.Extra = map[string]authenticationv1.ExtraValue{}
		}
		out.User.Extra[k] = v
	}
	return out
}

// tell hands on what was said.
func (c *caller) tell(ctx context.Context) {
	for _, text := range c.warnings {
		warning.AddWarning(ctx, "", text)
	}
	for _, a := range c.annotations {
		audit.AddAuditAnnotation(ctx, a[0], a[1])
	}
}
