package up

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// raw sends bytes to a cluster over a connection of its own, which stays open for writing, and
// returns the first answer.
func raw(t *testing.T, c *Cluster, send func(w io.Writer)) *http.Response {
	t.Helper()
	conn, err := tls.Dial("tcp", c.address.String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	go send(conn) // fails when the server has had enough
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// statusOf is the Status that an answer has.
func statusOf(t *testing.T, resp *http.Response) (s metav1.Status) {
	t.Helper()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return s
}

// TestStrangers sends requests of web pages, and under others' names.
func TestStrangers(t *testing.T) {
	c := start(t, Options{})
	_, port, _ := net.SplitHostPort(c.address.String())
	for _, tt := range []struct {
		host, origin, token string
		want                int
	}{
		{"127.0.0.1:" + port, "", c.token, 200},
		{"127.0.0.1", "", c.token, 200},
		{"[::1]:" + port, "", c.token, 200},
		{"localhost:" + port, "", c.token, 200},
		{"kubernetes.default.svc", "", c.token, 200},
		{"127.0.0.1:" + port, "https://127.0.0.1:" + port, c.token, 200},
		{"127.0.0.1:" + port, "", "", 401},
		{"127.0.0.1:" + port, "", c.token + "x", 401},
		{"127.0.0.1:" + port, "", "x", 401},
		{"drydock.example:" + port, "", c.token, 403},
		{"10.1.2.3:" + port, "", c.token, 403},
		{"localhost.drydock.example", "", c.token, 403},
		{"127.0.0.1:" + port, "https://drydock.example", c.token, 403},
		{"127.0.0.1:" + port, "http://127.0.0.1:" + port, c.token, 403},
		{"127.0.0.1:" + port, "null", c.token, 403},
	} {
		resp := raw(t, c, func(w io.Writer) {
			fmt.Fprintf(w, "GET /api/v1/namespaces HTTP/1.1\r\nHost: %s\r\n", tt.host)
			if tt.origin != "" {
				fmt.Fprintf(w, "Origin: %s\r\n", tt.origin)
			}
			if tt.token != "" {
				fmt.Fprintf(w, "Authorization: Bearer %s\r\n", tt.token)
			}
			fmt.Fprint(w, "\r\n")
		})
		if resp.StatusCode != tt.want {
			t.Errorf("Host %s, Origin %q, token %q: %s, want %d", tt.host, tt.origin, tt.token, resp.Status, tt.want)
		}
	}
}

// TestPlainHTTP finds nobody who speaks without TLS.
func TestPlainHTTP(t *testing.T) {
	c := start(t, Options{})
	resp, err := http.Get("http://" + c.address.String() + "/api")
	if err == nil {
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s", resp.Status)
		}
	}
}

// TestBodies sends bodies that are slow, that don't end, and that are too large.
func TestBodies(t *testing.T) {
	c := start(t, Options{limits: &limits{header: 200 * time.Millisecond, body: 200 * time.Millisecond, answer: time.Minute, requests: 10, connections: 10}})
	head := func(w io.Writer, method, path, more string) {
		fmt.Fprintf(w, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s\r\n\r\n", method, path, c.token, more)
	}
	chunk := []byte("10000\r\n" + strings.Repeat(" ", 0x10000) + "\r\n")
	for _, tt := range []struct {
		name string
		send func(w io.Writer)
		want int
	}{
		{"slow", func(w io.Writer) {
			head(w, "POST", "/api/v1/namespaces", "Content-Length: 1000")
			fmt.Fprint(w, `{"kind":`)
		}, http.StatusRequestTimeout},
		{"slow patch", func(w io.Writer) {
			head(w, "PATCH", "/api/v1/namespaces/default", "Content-Length: 1000")
			fmt.Fprint(w, `{`)
		}, http.StatusUnsupportedMediaType}, // not even read
		{"endless", func(w io.Writer) {
			head(w, "POST", "/api/v1/namespaces", "Transfer-Encoding: chunked")
			for range 1000 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, http.StatusRequestEntityTooLarge},
		{"large", func(w io.Writer) {
			head(w, "POST", "/api/v1/namespaces", "Content-Length: 4000000")
			_, _ = w.Write(bytes.Repeat([]byte(" "), 4000000))
		}, http.StatusRequestEntityTooLarge},
		{"slow control", func(w io.Writer) {
			head(w, "POST", "/drydock/do", "Content-Length: 1000")
		}, http.StatusRequestTimeout},
		{"endless control", func(w io.Writer) {
			head(w, "POST", "/drydock/do", "Transfer-Encoding: chunked")
			for range 1000 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, http.StatusRequestEntityTooLarge},
		{"large header", func(w io.Writer) {
			head(w, "GET", "/api", "X: "+strings.Repeat("x", 2<<20))
		}, http.StatusRequestHeaderFieldsTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp := raw(t, c, tt.send)
			if resp.StatusCode != tt.want {
				data, _ := io.ReadAll(resp.Body)
				t.Errorf("%s, want %d: %s", resp.Status, tt.want, data)
			}
		})
	}
}

// TestTooManyRequests has the server full of requests whose bodies are slow.
func TestTooManyRequests(t *testing.T) {
	c := start(t, Options{limits: &limits{header: time.Minute, body: time.Minute, answer: time.Minute, requests: 2, connections: 10}})
	for range 2 {
		conn, err := tls.Dial("tcp", c.address.String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 10\r\nContent-Type: application/json\r\n\r\n", c.token)
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		resp := raw(t, c, func(w io.Writer) {
			fmt.Fprintf(w, "GET /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", c.token)
		})
		if resp.StatusCode == http.StatusTooManyRequests {
			if s := statusOf(t, resp); s.Reason != metav1.StatusReasonTooManyRequests || resp.Header.Get("Retry-After") != "1" {
				t.Errorf("%v %v", s, resp.Header)
			}
			break
		}
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%s, want 429", resp.Status)
		}
	}
}

// TestWatchesLast has a watch live on after the times that bodies and answers have.
func TestWatchesLast(t *testing.T) {
	const short = 300 * time.Millisecond
	for _, protocol := range []string{"http/1.1", "h2"} {
		c := start(t, Options{limits: &limits{header: short, body: short, answer: short, requests: 10, connections: 10}})
		config := c.Config()
		config.NextProtos = []string{protocol}
		watcher(t, config, 3*short)
	}
}

// watcher watches, and makes something to be seen a while later, twice.
func watcher(t *testing.T, config *rest.Config, after time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	namespaces := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces()
	w, err := namespaces.Watch(ctx, metav1.ListOptions{ResourceVersion: "0", LabelSelector: "kubernetes.io/metadata.name in (later, last)"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, name := range []string{"later", "last"} {
		time.Sleep(after)
		if _, err := namespaces.Create(ctx, namespaceNamed(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		ev, ok := <-w.ResultChan()
		if got, is := ev.Object.(*v1.Namespace); !ok || !is || got.Name != name {
			t.Fatalf("%v: event %v, want namespace %s", config.NextProtos, ev, name)
		}
	}
}

// TestServiceAccountToken lets a service account in by a token of this run, and not by one
// that whoever knows the seed can make: of another run with the same seed.
func TestServiceAccountToken(t *testing.T) {
	token := func(c *Cluster) string {
		t.Helper()
		accounts := kubernetes.NewForConfigOrDie(c.Config()).CoreV1().ServiceAccounts("default")
		if _, err := accounts.Create(t.Context(), &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		r, err := accounts.CreateToken(t.Context(), "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Status.Token
	}
	begin := time.Now()
	a, b := start(t, Options{NoControlPlane: true, Start: begin, Paused: true}), start(t, Options{NoControlPlane: true, Start: begin, Paused: true})
	for _, tt := range []struct {
		token, want string
	}{{token(a), "system:serviceaccount:default:robot"}, {token(b), ""}} {
		config := a.Config()
		config.BearerToken = tt.token
		r, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if tt.want == "" && !apierrors.IsUnauthorized(err) || tt.want != "" && (err != nil || r.Status.UserInfo.Username != tt.want) {
			t.Errorf("%v %v, want %q", r, err, tt.want)
		}
		ask := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: tt.token}}
		told, err := kubernetes.NewForConfigOrDie(a.Config()).AuthenticationV1().TokenReviews().Create(t.Context(), ask, metav1.CreateOptions{})
		if err != nil || told.Status.User.Username != tt.want || told.Status.Authenticated != (tt.want != "") {
			t.Errorf("review: %+v %v, want %q", told, err, tt.want)
		}
	}
}
