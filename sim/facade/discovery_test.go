package facade

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// handDoor runs what crosses at once, or says that the API is gone.
type handDoor struct{ err error }

func (d *handDoor) Do(_ context.Context, fn func()) error {
	if d.err == nil {
		fn()
	}
	return d.err
}

func (*handDoor) Deliver(_ context.Context, fn func()) { fn() }

// byHand returns a facade whose requests are handled at once, and its door.
func byHand(t *testing.T) (*Facade, *handDoor) {
	l, door := loop.New(loop.Options{}), &handDoor{}
	t.Cleanup(l.Close)
	return New(Options{API: apiserver.New(apiserver.Options{Loop: l}), Door: door}), door
}

// answer returns the answer to a request whose headers are "Name: value".
func answer(f *Facade, method, path string, headers ...string) (code int, body string, header http.Header) {
	req, w := httptest.NewRequest(method, path, http.NoBody), httptest.NewRecorder()
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	f.ServeHTTP(w, req)
	data, _ := io.ReadAll(w.Body)
	return w.Code, string(data), w.Header()
}

// TestPaths: what is outside of resources is answered as upstream's router and handlers do.
func TestPaths(t *testing.T) {
	f, _ := byHand(t)
	for _, c := range []struct {
		method, path string
		code         int
		body         string
	}{
		{"GET", "/", 200, `"/apis/apps/v1"`},
		{"GET", "/nothing", 404, "404 page not found"},
		{"GET", "/api/", 200, `{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs"`},
		{"POST", "/api", 405, `"reason":"MethodNotAllowed"`},
		{"GET", "/api/v1", 200, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"bindings"`},
		{"GET", "/api/v2", 404, `"reason":"NotFound"`},
		{"GET", "/apis/apps", 200, `"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}`},
		{"GET", "/apis/none", 404, "404 page not found"},
		{"GET", "/apis/apps/v9", 404, `"reason":"NotFound"`},
		{"GET", "/apis/apps/v1", 200, `{"name":"deployments/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","patch","update"]}`},
		{"GET", "/version", 200, `"minor": "36"`},
		{"DELETE", "/version", 405, `"reason":"MethodNotAllowed"`},
		{"DELETE", "/api/v1/namespaces", 405, `"reason":"MethodNotAllowed"`},
		{"GET", "/readyz/none", 404, "404 page not found"},
		{"GET", "/livez?verbose&exclude=etcd&exclude=x", 200, "[+]etcd excluded: ok"},
		{"GET", "/livez?verbose&exclude=etcd&exclude=x", 200, `warn: some health checks cannot be excluded: no matches for "x"`},
		{"GET", "/api/v1/componentstatuses", 200, `{"metadata":{"name":"etcd-0"},"conditions":[{"type":"Healthy","status":"True","message":"ok"}]}`},
		{"GET", "/api/v1/componentstatuses?fieldSelector=metadata.name%3Dscheduler", 200, `"items":[{"metadata":{"name":"scheduler"}`},
		{"GET", "/api/v1/componentstatuses/none", 404, `componentstatus \"none\" not found`},
		{"DELETE", "/api/v1/componentstatuses/etcd-0", 405, `"reason":"MethodNotAllowed"`},
		{"GET", "/api/v1/namespaces/default/bindings", 405, `"reason":"MethodNotAllowed"`},
		{"GET", "/.well-known/openid-configuration", 200, `"jwks_uri":"https://10.0.0.1:8443/openid/v1/jwks"`},
		{"GET", "/openid/v1/jwks", 200, `"kty":"EC"`},
		{"POST", "/openid/v1/jwks", 405, `"reason":"MethodNotAllowed"`},
		{"GET", "/metrics/slis", 200, `kubernetes_healthcheck{name="etcd",type="livez"} 1`},
		{"GET", "/statusz", 200, "Up: 0s\n"},
		{"GET", "/api/v1/namespaces/default/pods/p/log", 404, `pods \"p\" not found`},
		{"POST", "/api/v1/namespaces/default/services/kubernetes/proxy/a/b", 501, `services/proxy is not simulated`},
		{"GET", "/readyz?verbose", 200, "readyz check passed"},
	} {
		if code, body, _ := answer(f, c.method, c.path); code != c.code || !strings.Contains(body, c.body) {
			t.Errorf("%s %s: %d %s, want %d ... %s", c.method, c.path, code, body, c.code, c.body)
		}
	}
}

// TestAggregatedDiscovery: who asks for all in one gets it, once per change.
func TestAggregatedDiscovery(t *testing.T) {
	f, _ := byHand(t)
	const accept = "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
	code, body, header := answer(f, "GET", "/apis", accept)
	want := `{"resource":"deployments","responseKind":{"group":"apps","version":"v1","kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment"`
	if code != 200 || !strings.Contains(body, want) || !strings.Contains(header.Get("Content-Type"), "as=APIGroupDiscoveryList") {
		t.Errorf("%d %v %.2000s, want %s", code, header, body, want)
	}
	if code, _, _ := answer(f, "GET", "/apis", accept, "If-None-Match: "+header.Get("ETag")); code != http.StatusNotModified {
		t.Errorf("asked again: %d", code)
	}
	if code, body, _ := answer(f, "GET", "/api", accept); code != 200 || !strings.Contains(body, `"subresource":"eviction","responseKind":{"group":"policy","version":"v1","kind":"Eviction"}`) {
		t.Errorf("%d %.2000s", code, body)
	}
	f.kinds.drop(apiserver.KindDeployment)
	if code, body, _ := answer(f, "GET", "/apis", accept, "If-None-Match: "+header.Get("ETag")); code != 200 || strings.Contains(body, want) {
		t.Errorf("after a change: %d", code)
	}
}

// TestHealth: an API that is gone is not well, and why is nobody's business.
func TestHealth(t *testing.T) {
	f, door := byHand(t)
	door.err = errors.New("gone")
	code, body, _ := answer(f, "GET", "/livez?exclude=etcd")
	if code != 500 || !strings.Contains(body, "[-]ping failed: reason withheld\n") || !strings.HasSuffix(body, "livez check failed\n") || !strings.Contains(body, "[+]etcd excluded: ok") {
		t.Errorf("%d %s", code, body)
	}
}

// TestPartialMetadata: who asks for the metadata of the wrong thing is told what it is.
func TestPartialMetadata(t *testing.T) {
	f, _ := byHand(t)
	const one, list = "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	for _, c := range []struct {
		path, accept string
		code         int
		body         string
	}{
		{"/api/v1/namespaces", one, 406, "the requested object is a list (*core.NamespaceList)"},
		{"/api/v1/namespaces", list, 200, `"kind":"PartialObjectMetadataList"`},
		{"/api/v1/namespaces/default", list, 406, "the requested object is not a list (*core.Namespace)"},
		{"/api/v1/namespaces/none", list, 404, "not found"},
		{"/api/v1/namespaces/default", one, 200, `"kind":"PartialObjectMetadata"`},
		{"/apis/scheduling.k8s.io/v1/priorityclasses", one, 406, "(*scheduling.PriorityClassList)"},
	} {
		if code, body, _ := answer(f, "GET", c.path, c.accept); code != c.code || !strings.Contains(body, c.body) {
			t.Errorf("%s %s: %d %s", c.path, c.accept, code, body)
		}
	}
}
