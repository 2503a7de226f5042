package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"
)

// auth says who may ask what (upstream cmd/kubelet/app/auth.go and
// pkg/kubelet/server/auth.go). What the API was asked is kept as long as the
// configuration says.
type auth struct {
	node  string
	authn authenticator.Request
	authz authorizer.Authorizer
	// clientCA verifies clients' certificates; nil: nobody's count. It follows its
	// file while it runs.
	clientCA *dynamiccertificates.DynamicFileCAContent
}

// newAuth returns who may ask. client is nil in standalone mode.
func newAuth(node string, c *kubeletconfig.KubeletConfiguration, client kubernetes.Interface) (*auth, error) {
	a := &auth{node: node}
	n := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous: &apiserver.AnonymousAuthConfig{Enabled: ptr.Deref(c.Authentication.Anonymous.Enabled, false)},
		CacheTTL:  c.Authentication.Webhook.CacheTTL.Duration,
	}
	var err error
	if file := c.Authentication.X509.ClientCAFile; file != "" {
		if a.clientCA, err = dynamiccertificates.NewDynamicCAContentFromFile("client-ca-bundle", file); err != nil {
			return nil, fmt.Errorf("unable to load client CA file %s: %w", file, err)
		}
		n.ClientCertificateCAContentProvider = a.clientCA
	}
	if ptr.Deref(c.Authentication.Webhook.Enabled, false) {
		if client == nil {
			return nil, errors.New("no client provided, cannot use webhook authentication")
		}
		n.TokenAccessReviewClient, n.WebhookRetryBackoff = client.AuthenticationV1(), retries()
	}
	if a.authn, _, err = n.New(); err != nil {
		return nil, err
	}
	if c.Authorization.Mode == kubeletconfig.KubeletAuthorizationModeAlwaysAllow {
		a.authz = authorizerfactory.NewAlwaysAllowAuthorizer()
		return a, nil
	}
	if client == nil {
		return nil, errors.New("no client provided, cannot use webhook authorization")
	}
	a.authz, err = authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(),
		AllowCacheTTL:             c.Authorization.Webhook.CacheAuthorizedTTL.Duration,
		DenyCacheTTL:              c.Authorization.Webhook.CacheUnauthorizedTTL.Duration,
		WebhookRetryBackoff:       retries(),
	}.New()
	return a, err
}

// retries are how often the API is asked again when it does not answer (upstream
// DefaultAuthWebhookRetryBackoff).
func retries() *wait.Backoff {
	return &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}
}

// run follows the file of the client CA until ctx ends.
func (a *auth) run(ctx context.Context) {
	if a.clientCA != nil {
		go a.clientCA.Run(ctx, 1)
	}
}

// filter refuses who may not ask (upstream InstallAuthFilter), with its texts.
func (a *auth) filter(req *restful.Request, resp *restful.Response, chain *restful.FilterChain) {
	who, ok, err := a.authn.AuthenticateRequest(req.Request)
	if err != nil {
		klog.ErrorS(err, "Unable to authenticate the request due to an error")
	}
	if err != nil || !ok {
		_ = resp.WriteErrorString(http.StatusUnauthorized, "Unauthorized")
		return
	}
	verb, subs := verbs[req.Request.Method], subresources(req.Request.URL.Path)
	for _, sub := range subs {
		decision, _, err := a.authz.Authorize(req.Request.Context(), a.attributes(who.User, verb, sub, req.Request.URL.Path))
		if err != nil {
			text := fmt.Sprintf("Authorization error (user=%s, verb=%s, resource=nodes, subresource=%s)", who.User.GetName(), verb, sub)
			klog.ErrorS(err, "Authorization error", "user", who.User.GetName(), "verb", verb, "resource", "nodes", "subresource", sub)
			_ = resp.WriteErrorString(http.StatusInternalServerError, text)
			return
		}
		if decision == authorizer.DecisionAllow {
			chain.ProcessFilter(req, resp)
			return
		}
	}
	klog.V(2).InfoS("Forbidden", "user", who.User.GetName(), "verb", verb, "resource", "nodes", "subresource(s)", subs)
	_ = resp.WriteErrorString(http.StatusForbidden,
		fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource(s)=%v)\n", who.User.GetName(), verb, subs))
}

// attributes are what the API is asked about a request.
func (a *auth) attributes(u user.Info, verb, subresource, path string) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: u, Verb: verb, APIVersion: "v1", Resource: "nodes", Subresource: subresource,
		Name: a.node, ResourceRequest: true, Path: path,
	}
}

// verbs are the API's for the methods of HTTP; another has none.
var verbs = map[string]string{
	http.MethodPost: "create", http.MethodGet: "get", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// owners are the subresources of nodes that paths stand for. A fine one is asked
// for before proxy, which all of these paths were once.
var owners = []struct {
	path, subresource string
	fine              bool
}{
	{"/pods", "pods", true},
	{"/healthz", "healthz", true},
	{"/configz", "configz", true},
	{"/runningpods", "pods", true},
	{"/stats", "stats", false},
	{"/metrics", "metrics", false},
	{"/logs", "log", false},
	{"/checkpoint", "checkpoint", false},
	{"/statusz", "statusz", false},
	{"/flagz", "configz", false},
}

// subresources are those any of which allows a path, in the order in which they are
// asked for (upstream GetRequestAttributes).
func subresources(path string) []string {
	for _, o := range owners {
		if path != o.path && !strings.HasPrefix(path, o.path+"/") {
			continue
		}
		if o.fine {
			return []string{o.subresource, "proxy"}
		}
		return []string{o.subresource}
	}
	return []string{"proxy"}
}
