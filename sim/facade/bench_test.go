package facade

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// What requests cost the server, without a client or a socket:
//
//	go test ./sim/facade -run '^$' -bench Request -cpu 1

// benchFacade serves an empty cluster, whose loop follows the wall clock.
func benchFacade(b *testing.B) *Facade {
	l := loop.NewReal(loop.Options{Name: "api"})
	api := apiserver.New(apiserver.Options{Loop: l})
	gone := make(chan struct{})
	f := New(Options{API: api, Door: NewRealDoor(l, gone)})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(gone)
		_ = l.RunReal(ctx)
	}()
	b.Cleanup(func() {
		cancel()
		<-gone
	})
	// Admission wants a pod's service account to be there.
	benchAsk(b, f, "POST", "/api/v1/namespaces/default/serviceaccounts", benchJSON, benchProto(b, &v1.ServiceAccount{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: metav1.ObjectMeta{Name: "default"},
	}), 201)
	return f
}

// benchProto is an object as protobuf.
func benchProto(b *testing.B, obj runtime.Object) []byte {
	var out bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &out); err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

// benchPod is a pod of the usual size, as protobuf.
func benchPod(b *testing.B, name string) []byte {
	return benchProto(b, &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "web", "tier": "front"}},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name: "main", Image: "web:1", Env: []v1.EnvVar{{Name: "A", Value: "1"}},
			Ports: []v1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		}}},
	})
}

// benchAsk sends a request and wants an answer with that code.
func benchAsk(b *testing.B, h http.Handler, method, path, accept string, body []byte, code int) {
	req := httptest.NewRequest(method, path, bytes.NewReader(body))
	req.Header.Set("Accept", accept)
	req.Header.Set("Content-Type", "application/vnd.kubernetes.protobuf")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if w.Code != code {
		b.Fatalf("%s %s: %d: %s", method, path, w.Code, w.Body)
	}
}

const (
	benchPods     = "/api/v1/namespaces/default/pods"
	benchJSON     = "application/json"
	benchProtobuf = "application/vnd.kubernetes.protobuf"
)

func BenchmarkRequestGet(b *testing.B) {
	for _, accept := range []string{benchJSON, benchProtobuf} {
		b.Run(accept[len("application/"):], func(b *testing.B) {
			f := benchFacade(b)
			benchAsk(b, f, "POST", benchPods, accept, benchPod(b, "web"), 201)
			b.ReportAllocs()
			for b.Loop() {
				benchAsk(b, f, "GET", benchPods+"/web", accept, nil, 200)
			}
		})
	}
}

func BenchmarkRequestCreate(b *testing.B) {
	for _, accept := range []string{benchJSON, benchProtobuf} {
		b.Run(accept[len("application/"):], func(b *testing.B) {
			f := benchFacade(b)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				benchAsk(b, f, "POST", benchPods, accept, benchPod(b, fmt.Sprintf("web-%d", i)), 201)
			}
		})
	}
}

// BenchmarkInProcess is what a client-go client in the same process gets done, eight requests
// at once, both sides counted:
//
//	go test ./sim/facade -run '^$' -bench InProcess
func BenchmarkInProcess(b *testing.B) {
	f := benchFacade(b)
	benchAsk(b, f, "POST", benchPods, benchProtobuf, benchPod(b, "web"), 201)
	pods := kubernetes.NewForConfigOrDie(&rest.Config{
		Host: "http://api", Transport: &Transport{Handler: f}, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: benchProtobuf, AcceptContentTypes: benchProtobuf},
	}).CoreV1().Pods("default")
	b.SetParallelism(max(1, 8/goruntime.GOMAXPROCS(0)))
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := pods.Get(b.Context(), "web", metav1.GetOptions{}); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}
