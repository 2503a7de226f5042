package facade

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// converter is a webhook that calls a field host in v1 and hostname in v2.
type converter struct {
	mu    sync.Mutex
	wrong string // what it does wrong
	asked int
}

func (c *converter) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	review := &apiextensionsv1.ConversionReview{}
	body, err := io.ReadAll(req.Body)
	if err := errors.Join(err, json.Unmarshal(body, review)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw.Raw); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		from, to := "host", "hostname"
		if strings.HasSuffix(review.Request.DesiredAPIVersion, "v1") {
			from, to = to, from
		}
		if host, ok, _ := unstructured.NestedString(u.Object, "spec", from); ok {
			unstructured.RemoveNestedField(u.Object, "spec", from)
			_ = unstructured.SetNestedField(u.Object, host, "spec", to)
		}
		u.SetAPIVersion(review.Request.DesiredAPIVersion)
		u.SetLabels(map[string]string{"converted": "yes"})
		u.SetFinalizers([]string{"example.com/not-yours"})
		if c.wrong == "name" {
			u.SetName("other")
		}
		r.ConvertedObjects = append(r.ConvertedObjects, runtime.RawExtension{Object: u})
	}
	switch c.wrong {
	case "fails":
		r.Result = metav1.Status{Status: metav1.StatusFailure, Message: "no way"}
	case "uid":
		r.UID = "x"
	case "fewer":
		r.ConvertedObjects = nil
	}
	review.Request, review.Response = nil, r
	_ = json.NewEncoder(w).Encode(review)
}

func (c *converter) be(wrong string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = wrong
}

// hosts is a definition whose webhook converts between v1, which is stored, and v2.
func hosts(url string, ca []byte) *apiextensionsv1.CustomResourceDefinition {
	version := func(name, field string, stored bool) apiextensionsv1.CustomResourceDefinitionVersion {
		text := apiextensionsv1.JSONSchemaProps{Type: "string"}
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: stored, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"spec": {Type: "object", Required: []string{field}, Properties: map[string]apiextensionsv1.JSONSchemaProps{field: text}},
			}},
		}}
	}
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "hosts.example.com"}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "hosts", Singular: "host", Kind: "Host", ListKind: "HostList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", "host", true), version("v2", "hostname", false)},
		Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: ca},
		}},
	}}
}

// TestConversion reads and writes custom resources in the version that isn't stored, and
// hears what is wrong with a webhook's answers.
func TestConversion(t *testing.T) {
	hook := &converter{}
	server := httptest.NewTLSServer(hook)
	defer server.Close()
	config, ctx := inRealTime(t), t.Context()
	def := hosts(server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	if _, err := apiextensions.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions().Create(ctx, def, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // it is established a few milliseconds later
	in := func(version string) dynamic.ResourceInterface {
		return dynamic.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{Group: "example.com", Version: version, Resource: "hosts"}).Namespace("default")
	}
	object := func(name, version, field, host string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/" + version, "kind": "Host",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{field: host}}}
	}
	check := func(what string, u *unstructured.Unstructured, err error, version, field, host string) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		spec, _, _ := unstructured.NestedStringMap(u.Object, "spec")
		if u.GetAPIVersion() != "example.com/"+version || len(spec) != 1 || spec[field] != host || len(u.GetFinalizers()) != 0 {
			t.Errorf("%s: %v, want %s with %s: %s", what, u.Object, version, field, host)
		}
	}
	made, err := in("v2").Create(ctx, object("a", "v2", "hostname", "one"), metav1.CreateOptions{})
	check("create in v2", made, err, "v2", "hostname", "one")
	if made.GetUID() == "" || made.GetLabels()["converted"] != "yes" {
		t.Errorf("made %v", made.Object)
	}
	got, err := in("v1").Get(ctx, "a", metav1.GetOptions{})
	check("get in v1", got, err, "v1", "host", "one")
	got, err = in("v2").Get(ctx, "a", metav1.GetOptions{})
	check("get in v2", got, err, "v2", "hostname", "one")
	if _, err := in("v2").Create(ctx, object("b", "v2", "host", "one"), metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "spec.hostname: Required value") {
		t.Errorf("create in v2 with a field of v1: %v", err)
	}
	got.Object["spec"] = map[string]any{"hostname": "two"}
	got, err = in("v2").Update(ctx, got, metav1.UpdateOptions{})
	check("update in v2", got, err, "v2", "hostname", "two")
	got, err = in("v2").Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"hostname":"three"}}`), metav1.PatchOptions{})
	check("patch in v2", got, err, "v2", "hostname", "three")

	watch, err := in("v2").Watch(ctx, metav1.ListOptions{ResourceVersion: got.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	for _, name := range []string{"b", "c"} {
		made, err = in("v1").Create(ctx, object(name, "v1", "host", name), metav1.CreateOptions{})
		check("create in v1", made, err, "v1", "host", name)
		ev := <-watch.ResultChan()
		check("watch in v2", ev.Object.(*unstructured.Unstructured), nil, "v2", "hostname", name)
	}
	before := hook.asked
	list, err := in("v2").List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 3 || hook.asked != before+1 {
		t.Fatalf("list in v2: %v, %v, asked %d times", list, err, hook.asked-before)
	}
	for i, host := range []string{"three", "b", "c"} {
		check("list in v2", &list.Items[i], nil, "v2", "hostname", host)
	}

	for wrong, want := range map[string]string{
		"fails": "conversion webhook for example.com/v1, Kind=Host failed: no way",
		"uid":   `, got "x"`,
		"fewer": "conversion webhook for example.com/v1, Kind=Host returned 0 objects, expected 1",
		"name":  "returned invalid object: must have the same name: a != other",
	} {
		hook.be(wrong)
		if _, err := in("v2").Get(ctx, "a", metav1.GetOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", wrong, err, want)
		}
		if _, err := in("v2").Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"hostname":"four"}}`), metav1.PatchOptions{}); err == nil {
			t.Errorf("%s: the patch is taken", wrong)
		}
	}
	hook.be("")
	got, err = in("v1").Get(ctx, "a", metav1.GetOptions{})
	check("after all that", got, err, "v1", "host", "three")

	// Who wrote the field in one version manages it under its name in the other.
	apply := func(by, version, field, host string, force bool) error {
		data, err := json.Marshal(object("d", version, field, host))
		if err != nil {
			t.Fatal(err)
		}
		_, err = in(version).Patch(ctx, "d", types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: by, Force: &force})
		return err
	}
	if err := apply("one", "v1", "host", "d", false); err != nil {
		t.Fatal(err)
	}
	if err := apply("two", "v2", "hostname", "d", false); err != nil {
		t.Errorf("apply of the same in another version: %v", err)
	}
	if err := apply("two", "v2", "hostname", "e", false); err == nil || !strings.Contains(err.Error(), `conflict with "one": .spec.host`) {
		t.Errorf("apply of what another manages in another version: %v", err)
	}
	if err := apply("two", "v2", "hostname", "e", true); err != nil {
		t.Fatal(err)
	}
	if got, err = in("v1").Get(ctx, "d", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	check("after it was forced", got, err, "v1", "host", "e")
	for _, e := range got.GetManagedFields() {
		if e.Manager == "one" && strings.Contains(string(e.FieldsV1.GetRawBytes()), "f:host") {
			t.Errorf("one still manages what two has taken: %v", e)
		}
	}
}
