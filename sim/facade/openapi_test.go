package facade

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// at returns what is at a path of fields in a document.
func at(doc any, path ...string) any {
	for _, name := range path {
		m, ok := doc.(map[string]any)
		if !ok {
			return nil
		}
		doc = m[name]
	}
	return doc
}

// TestOpenAPI: documents say what kubectl and client-go go by, refer to nothing that they
// don't have, and have all kinds that are served.
func TestOpenAPI(t *testing.T) {
	f, _ := byHand(t)
	read := func(path string) (doc map[string]any, raw string) {
		code, body, _ := answer(f, "GET", path)
		if err := json.Unmarshal([]byte(body), &doc); code != 200 || err != nil {
			t.Fatalf("%s: %d, %v", path, code, err)
		}
		return doc, body
	}
	whole := func(name, body, prefix string, schemas any) {
		for _, m := range regexp.MustCompile(`"\$ref":"`+prefix+`([^"]+)"`).FindAllStringSubmatch(body, -1) {
			if at(schemas, m[1]) == nil {
				t.Errorf("%s: refers to %s, which isn't there", name, m[1])
			}
		}
	}
	index, _ := read("/openapi/v3")
	v2, body := read("/openapi/v2")
	whole("v2", body, "#/definitions/", v2["definitions"])
	for _, g := range f.discover().groups {
		for _, v := range g.Versions {
			path := "apis/" + v.GroupVersion
			if g.Name == "" {
				path = "api/" + v.GroupVersion
			}
			url, _ := at(index, "paths", path, "serverRelativeURL").(string)
			doc, body := read(url)
			whole(path, body, "#/components/schemas/", at(doc, "components", "schemas"))
		}
	}
	for gv, list := range f.discover().resources {
		for _, r := range list {
			path := "/apis/" + gv.String() + "/"
			if gv.Group == "" {
				path = "/api/" + gv.Version + "/"
			}
			if r.Namespaced {
				path += "namespaces/{namespace}/"
			}
			name, sub, isSub := strings.Cut(r.Name, "/")
			if isSub && strings.HasSuffix(r.Kind, "Options") { // leads out of the API
				continue
			}
			if path += name; isSub {
				path += "/{name}/" + sub
			}
			if at(v2, "paths", path) == nil {
				t.Errorf("no path %s: is its type among gen's packages?", path)
			}
		}
	}
	if got := at(v2, "definitions", "io.k8s.apimachinery.pkg.util.intstr.IntOrString", "type"); got != "string" {
		t.Errorf("IntOrString in v2 is %v", got)
	}
	apps, _ := read("/openapi/v3/apis/apps/v1")
	patch := at(apps, "paths", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}", "patch")
	if at(patch, "x-kubernetes-group-version-kind", "kind") != "Deployment" || !strings.Contains(inJSON(at(patch, "parameters")), `"name":"fieldValidation"`) {
		t.Errorf("patch of a deployment: %s", inJSON(patch))
	}
	containers := at(apps, "components", "schemas", "io.k8s.api.core.v1.PodSpec", "properties", "containers")
	if at(containers, "x-kubernetes-patch-merge-key") != "name" || at(containers, "x-kubernetes-patch-strategy") != "merge" {
		t.Errorf("containers: %s", inJSON(containers))
	}
}

func inJSON(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}

// TestOpenAPIForms: documents come as JSON and protobuf, and not again to who has them.
func TestOpenAPIForms(t *testing.T) {
	f, _ := byHand(t)
	_, body, _ := answer(f, "GET", "/openapi/v3/apis/batch/v1", "Accept: application/com.github.proto-openapi.spec.v3@v1.0+protobuf")
	if v3 := (&openapi_v3.Document{}); proto.Unmarshal([]byte(body), v3) != nil || v3.Components.Schemas == nil {
		t.Errorf("v3 in protobuf: %.100q", body)
	}
	_, body, _ = answer(f, "GET", "/openapi/v2", "Accept: application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
	if v2 := (&openapi_v2.Document{}); proto.Unmarshal([]byte(body), v2) != nil || v2.Definitions == nil {
		t.Errorf("v2 in protobuf: %.100q", body)
	}
	const path = "/openapi/v3/apis/batch/v1"
	_, _, header := answer(f, "GET", path)
	for _, c := range []struct {
		path    string
		headers []string
		code    int
	}{
		{path, []string{"Accept: text/html"}, http.StatusNotAcceptable},
		{path, []string{"If-None-Match: " + header.Get("Etag")}, http.StatusNotModified},
		{path + "?hash=old", nil, http.StatusMovedPermanently},
		{path + "?hash=" + strings.Trim(header.Get("Etag"), `"`), nil, http.StatusOK},
		{"/openapi/v3/apis/none/v1", nil, http.StatusNotFound},
	} {
		if code, _, got := answer(f, "GET", c.path, c.headers...); code != c.code || code == http.StatusMovedPermanently && !strings.HasSuffix(got.Get("Location"), strings.Trim(header.Get("Etag"), `"`)) {
			t.Errorf("%s %v: %d %v, want %d", c.path, c.headers, code, got, c.code)
		}
	}
}

// TestOpenAPIOfCustomResources: what a definition brings is in the documents, and what it
// doesn't change is as it was.
func TestOpenAPIOfCustomResources(t *testing.T) {
	f, _ := byHand(t)
	_, _, before := answer(f, "GET", "/openapi/v3/apis/batch/v1")
	def := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal([]byte(widgets), def); err != nil {
		t.Fatal(err)
	}
	if _, err := f.o.API.Create(def); err != nil {
		t.Fatal(err)
	}
	if err := f.o.API.Loop().RunUntil(f.o.API.Loop().Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	_, body, _ := answer(f, "GET", "/openapi/v3/apis/example.com/v1")
	var doc any
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if got := at(doc, "components", "schemas", "com.example.v1.Widget", "properties", "spec", "properties", "mode", "default"); got != "slow" {
		t.Errorf("the default of a field is %v in %s", got, body)
	}
	if _, body, _ = answer(f, "GET", "/openapi/v2"); !strings.Contains(body, `"com.example.v1.Widget":{`) || !strings.Contains(body, `"/apis/example.com/v1/namespaces/{namespace}/widgets/{name}":{`) {
		t.Errorf("v2 doesn't have widgets")
	}
	if _, _, after := answer(f, "GET", "/openapi/v3/apis/batch/v1"); after.Get("Etag") != before.Get("Etag") {
		t.Errorf("another group's document has changed")
	}
}
