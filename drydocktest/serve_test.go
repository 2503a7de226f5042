package drydocktest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	v1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// hook answers reviews of admission after a time.
func hook(t *testing.T, after *atomic.Int64, refuse string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		time.Sleep(time.Duration(after.Load()))
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(req.Body).Decode(review); err != nil {
			t.Error(err)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: review.Request.Name != refuse, Result: &metav1.Status{Message: "not this one"}}
		review.Request = nil
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	})
}

// TestAdmissionWebhook: the API asks a handler of the process, for as long as its process
// runs and it answers in time.
func TestAdmissionWebhook(t *testing.T) {
	Run(t, Options{Manifests: []string{"testdata/webhook.yaml"}}, func(t *testing.T, c *Cluster) {
		var after atomic.Int64
		c.Go("hooks", func(ctx context.Context) error {
			_ = c.Config("hooks") // so that it can crash
			c.Serve("hooks.default.svc", hook(t, &after, "bad"))
			<-ctx.Done()
			return ctx.Err()
		})
		maps := kubernetes.NewForConfigOrDie(c.Config("user")).CoreV1().ConfigMaps("default")
		create := func(name string) (error, time.Duration) {
			began := time.Now()
			_, err := maps.Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			return err, time.Since(began)
		}
		if err, _ := create("good"); err != nil {
			t.Error(err)
		}
		if err, _ := create("bad"); err == nil || !strings.Contains(err.Error(), "not this one") {
			t.Errorf("bad: %v", err)
		}
		after.Store(int64(2 * time.Second))
		if err, took := create("slow"); err != nil || took < 2*time.Second || took > 3*time.Second {
			t.Errorf("slow: %v after %v", err, took)
		}
		after.Store(int64(time.Minute))
		if err, took := create("too-slow"); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "deadline exceeded") || took > 6*time.Second {
			t.Errorf("too slow: %v after %v", err, took)
		}
		after.Store(0)
		go c.CrashFor("hooks", time.Minute) //nolint:staticcheck // It fails a test only for a process that is not there.
		time.Sleep(time.Second)
		if err, _ := create("nobody"); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("nobody: %v", err)
		}
		time.Sleep(2 * time.Minute)
		if err, _ := create("again"); err != nil {
			t.Errorf("again: %v", err)
		}
	})
}

// TestConversionWebhook: objects of a definition with two versions are converted by a
// handler of the process.
func TestConversionWebhook(t *testing.T) {
	Run(t, Options{CRDs: []string{"testdata/two-versions.yaml"}}, func(t *testing.T, c *Cluster) {
		c.Serve("hooks.default.svc", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			review := &apiextensionsv1.ConversionReview{}
			if err := json.NewDecoder(req.Body).Decode(review); err != nil {
				t.Error(err)
				return
			}
			review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
			for _, raw := range review.Request.Objects {
				o := &unstructured.Unstructured{}
				if err := o.UnmarshalJSON(raw.Raw); err != nil {
					t.Error(err)
				}
				from, to := "size", "replicas"
				if review.Request.DesiredAPIVersion == "example.com/v1" {
					from, to = to, from
				}
				n, _, err := unstructured.NestedInt64(o.Object, "spec", from)
				if err != nil {
					t.Error(err)
				}
				o.SetAPIVersion(review.Request.DesiredAPIVersion)
				o.Object["spec"] = map[string]any{to: n}
				review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: o})
			}
			review.Request = nil
			if err := json.NewEncoder(w).Encode(review); err != nil {
				t.Error(err)
			}
		}))
		client := dynamic.NewForConfigOrDie(c.Config("user"))
		of := func(version string) dynamic.ResourceInterface {
			return client.Resource(schema.GroupVersionResource{Group: "example.com", Version: version, Resource: "boxes"}).Namespace("default")
		}
		box := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Box", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"size": int64(3)},
		}}
		if _, err := of("v1").Create(t.Context(), box, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		got, err := of("v2").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n, _, err := unstructured.NestedInt64(got.Object, "spec", "replicas"); n != 3 || err != nil {
			t.Errorf("%v, %v", got.Object["spec"], err)
		}
	})
}

// TestServe: what is served is found by name, and what isn't is said.
func TestServe(t *testing.T) {
	Run(t, Options{}, func(t *testing.T, c *Cluster) {
		c.Serve("hello", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { fmt.Fprint(w, "hello from ", req.URL.Path) }))
		for _, client := range []*http.Client{c.HTTP(), http.DefaultClient} {
			resp, err := client.Get("https://hello:8443/there")
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			if string(text) != "hello from /there" || err != nil {
				t.Errorf("%q, %v", text, err)
			}
		}
		if _, err := http.Get("http://elsewhere/"); err == nil || !strings.Contains(err.Error(), "by Serve") {
			t.Errorf("elsewhere: %v", err)
		}
	})
}

// TestKubeconfig: a program that reads a kubeconfig reaches the cluster as who it is.
func TestKubeconfig(t *testing.T) {
	Run(t, Options{}, func(t *testing.T, c *Cluster) {
		config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig("reader"))
		if err != nil {
			t.Fatal(err)
		}
		client := kubernetes.NewForConfigOrDie(config)
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		end := c.API().Fault(Fault{Client: "reader", Code: 500})
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); !apierrors.IsInternalError(err) {
			t.Errorf("with a fault: %v", err)
		}
		end()
	})
}
