package facade

import (
	"context"
	"crypto/x509"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/group"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Admin is who may do anything, as the user of an administrator's kubeconfig.
func Admin() user.Info {
	return &user.DefaultInfo{Name: "admin", UID: "admin-uid", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
}

// withUsers finds out who sends a request, and for whom (the headers Impersonate-*), before h
// serves it. Who can't say is refused with 401; nobody is anonymous, as upstream with
// the authorization mode AlwaysAllow.
func (f *Facade) withUsers(h http.Handler) http.Handler {
	admin, refuse := Admin(), filters.Unauthorized(f.types.codecs)
	h = impersonation.WithImpersonation(h, authorizerfactory.NewAlwaysAllowAuthorizer(), f.types.codecs)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, err := f.requests.NewRequestInfo(req)
		if err != nil {
			responsewriters.InternalError(w, req, err)
			return
		}
		ctx, who := request.WithRequestInfo(req.Context(), info), admin
		if f.o.Authenticate != nil {
			if who = f.authenticate(req); who == nil {
				refuse.ServeHTTP(w, req.WithContext(ctx))
				return
			}
		}
		h.ServeHTTP(w, req.WithContext(request.WithUser(ctx, who)))
	})
}

// authenticate says who sends a request; nil: nobody who is known. As upstream, a
// certificate goes before a token, and one that is not good is passed over.
func (f *Facade) authenticate(req *http.Request) user.Info {
	if f.o.Certificates && req.TLS != nil && len(req.TLS.PeerCertificates) > 0 {
		if who := f.certified(req); who != nil {
			return who
		}
	}
	token := bearerToken(req)
	if who := f.o.Authenticate(token); who != nil || f.o.TokenKey == nil || strings.Count(token, ".") != 2 {
		return who
	}
	var who user.Info
	if err := f.o.Door.Do(req.Context(), func() {
		if account, _, err := f.serviceAccount(token, nil); err == nil {
			who = account
		}
	}); err != nil {
		return nil
	}
	return who
}

// certified says whom the certificate of a request's client names; nil: it is not good.
func (f *Facade) certified(req *http.Request) user.Info {
	o := x509request.DefaultVerifyOptions()
	o.Roots = x509.NewCertPool()
	if err := f.o.Door.Do(req.Context(), func() {
		o.Roots.AddCert(f.o.API.Authority().Certificate)
		o.CurrentTime = f.o.API.Loop().Now()
	}); err != nil {
		return nil
	}
	known := group.NewAuthenticatedGroupAdder(x509request.New(o, x509request.CommonNameUserConversion))
	answer, ok, err := known.AuthenticateRequest(req)
	if err != nil || !ok {
		return nil
	}
	return answer.User
}

// serviceAccount says, on the API's loop, whose the token of a service account is, and for
// which of the audiences.
func (f *Facade) serviceAccount(token string, audiences []string) (who user.Info, meant []string, err error) {
	u, meant, err := f.o.API.Tokens().Authenticate(token, audiences)
	if err != nil {
		return nil, nil, err
	}
	extra := map[string][]string{}
	for k, v := range u.Extra {
		extra[k] = v
	}
	return &user.DefaultInfo{Name: u.Username, UID: u.UID, Groups: u.Groups, Extra: extra}, meant, nil
}

// bearerToken is the token that a request carries, or "" (apiserver's
// authentication/request/bearertoken).
func bearerToken(req *http.Request) string {
	kind, token, _ := strings.Cut(strings.TrimSpace(req.Header.Get("Authorization")), " ")
	if !strings.EqualFold(kind, "Bearer") {
		return ""
	}
	token, _, _ = strings.Cut(token, " ")
	return token
}

// serveControl serves what is not the API's, to administrators only.
func (f *Facade) serveControl(w http.ResponseWriter, req *http.Request) {
	if who, ok := request.UserFrom(req.Context()); !ok || !slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) {
		http.Error(w, "Forbidden: this is for members of "+user.SystemPrivilegedGroup, http.StatusForbidden)
		return
	}
	f.o.Control.ServeHTTP(w, req)
}

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
