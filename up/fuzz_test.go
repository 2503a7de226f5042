package up

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// FuzzDoor sends requests of all kinds to a cluster: none may have a handler panic, take
// long, be answered as the server's own mistake, or end the cluster.
func FuzzDoor(f *testing.F) {
	const (
		pod    = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"a"}]}}`
		widget = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`
		pods   = "/api/v1/namespaces/default/pods"
	)
	for _, seed := range []struct{ method, target, accept, contentType, body string }{
		{"GET", "/", "", "", ""},
		{"GET", "/api", "application/json", "", ""},
		{"GET", "/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "", ""},
		{"GET", "/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "", ""},
		{"GET", "/openapi/v3/api/v1?hash=0", "application/json", "", ""},
		{"GET", "/healthz?verbose", "", "", ""},
		{"GET", "/../../../etc/passwd", "", "", ""},
		{"GET", pods + "?limit=1&continue=x&labelSelector=a%20in%20(b)", "application/json;as=Table;v=v1;g=meta.k8s.io", "", ""},
		{"GET", pods + "?watch=1&timeoutSeconds=1&resourceVersion=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "application/vnd.kubernetes.protobuf;stream=watch", "", ""},
		{"GET", "/api/v1/watch/pods?fieldSelector=metadata.name%3Da", "application/cbor-seq", "", ""},
		{"POST", pods, "application/yaml", "application/json", pod},
		{"POST", pods + "?dryRun=All&fieldValidation=Strict", "application/cbor", "application/yaml", "apiVersion: v1\nkind: Pod\nmetadata: {generateName: x}\nspec: {containers: [{name: a, image: a}]}"},
		{"POST", pods, "", "application/vnd.kubernetes.protobuf", "k8s\x00\n\r\n\x02v1\x12\x03Pod\x12\x05\n\x03\n\x01a"},
		{"POST", pods, "", "application/cbor", "\xd9\xd9\xf7\xa2\x6akind\x63Pod"},
		{"PUT", pods + "/a", "", "application/json", pod},
		{"PATCH", pods + "/a", "", "application/json-patch+json", `[{"op":"replace","path":"/spec/containers/0/image","value":"b"}]`},
		{"PATCH", pods + "/a?fieldManager=x", "", "application/strategic-merge-patch+json", `{"spec":{"$setElementOrder/containers":[{"name":"a"}]}}`},
		{"PATCH", pods + "/a/status", "", "application/merge-patch+json", `{"status":{"phase":"Running"}}`},
		{"PATCH", pods + "/a?fieldManager=x&force=true", "", "application/apply-patch+yaml", pod},
		{"POST", pods + "/a/binding", "", "application/json", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"a"},"target":{"name":"node-0"}}`},
		{"POST", pods + "/a/eviction", "", "application/json", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"a"}}`},
		{"PUT", "/apis/apps/v1/namespaces/default/deployments/a/scale", "", "application/json", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a"},"spec":{"replicas":2}}`},
		{"DELETE", pods + "/a?gracePeriodSeconds=0", "", "application/json", `{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Foreground"}`},
		{"DELETE", pods + "?labelSelector=a", "", "", ""},
		{"POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", "application/json", widget},
		{"POST", "/apis/example.com/v1/namespaces/default/widgets", "", "application/json", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"a":[1,null,{"b":1e400}]}}`},
		{"POST", "/apis/authentication.k8s.io/v1/tokenreviews", "", "application/json", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"a.b.c"}}`},
		{"GET", pods + "/a/log?follow=true", "", "", ""},
		{"POST", pods + "/a/exec?command=ls&stdout=1", "", "", ""},
		{"FOO", pods + "/a/exec", "", "", ""},
		{"GET", "/api/v1/pods/a/log", "", "", ""},
		{"GET", "/api/v1/namespaces/default/services/https:a:1/proxy/x", "", "", ""},
		{"POST", "/drydock/do", "", "", "{fault: {node: node-0, cri: {method: RunPodSandbox, error: Unavailable}}}"},
		{"POST", "/drydock/do", "", "", "{apply: {files: [/etc/passwd]}}"},
		{"GET", "/drydock/status", "", "", ""},
		{"POST", "/drydock/compact", "", "", ""},
		{"OPTIONS", "*", "", "", ""},
		{"CONNECT", "localhost:1", "", "", ""},
	} {
		f.Add(seed.method, seed.target, seed.accept, seed.contentType, seed.body)
	}
	c, err := Start(f.Context(), Options{Nodes: 1, Paused: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := c.Stop(); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, method, target, accept, contentType, body string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || strings.HasPrefix(u.Path, "/drydock/step") {
			return // the first is refused by net/http, the second takes as long as it is asked to
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		req := (&http.Request{Method: method, URL: u, RequestURI: target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "localhost", RemoteAddr: "127.0.0.1:1",
			Header: http.Header{"Authorization": {"Bearer " + c.token}, "User-Agent": {"fuzz"}}, Body: http.NoBody}).WithContext(ctx)
		if accept != "" {
			req.Header.Set("Accept", accept)
		}
		if contentType != "" {
			req.Header.Set("Content-Type", contentType)
		}
		if body != "" {
			req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		}
		w := httptest.NewRecorder()
		began := time.Now()
		c.server.Handler.ServeHTTP(w, req)
		// Upstream's answers, too, to a patch that orders a field which isn't there, and to
		// one that applies what is of no type.
		known := strings.Contains(w.Body.String(), "unable to find api field in struct") || strings.Contains(w.Body.String(), "failed to create typed patch object")
		if w.Code == http.StatusInternalServerError && !known {
			t.Errorf("%s %q: %d %s", method, target, w.Code, w.Body)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s %q took %v", method, target, took)
		}
		if err := c.pacer.On(c.session.Cluster().API().Loop(), func() {}); err != nil {
			t.Fatalf("%s %q: the cluster has ended: %v: %v", method, target, err, c.Wait())
		}
	})
}
