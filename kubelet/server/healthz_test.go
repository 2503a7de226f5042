package server

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestHealthz(t *testing.T) {
	bad := errors.New("it is late")
	check := func(name string, err error) Check { return Check{name, func() error { return err }} }
	well := NewHealthz([]Check{Ping(), check("a", nil)}, []Check{check("syncloop", nil)})
	ill := NewHealthz([]Check{Ping(), check("a", bad)}, []Check{check("syncloop", bad)})
	for _, tc := range []struct {
		h    http.Handler
		path string
		code int
		body string
	}{
		{well, "/healthz", 200, "ok"},
		{well, "/healthz?verbose", 200, "[+]ping ok\n[+]a ok\nhealthz check passed\n"},
		{well, "/healthz?verbose=1&exclude=a", 200, "[+]ping ok\n[+]a excluded: ok\nhealthz check passed\n"},
		{well, "/healthz?verbose&exclude=y&exclude=x", 200, "[+]ping ok\n[+]a ok\nwarn: some health checks cannot be excluded: no matches for \"x\",\"y\"\nhealthz check passed\n"},
		{well, "/healthz/ping", 200, "ok"},
		{well, "/healthz/syncloop", 200, "ok"},
		{well, "/healthz/log", 404, "404 page not found\n"},
		{well, "/", 404, "404 page not found\n"},
		{ill, "/healthz", 500, "[+]ping ok\n[-]a failed: reason withheld\nhealthz check failed\n"},
		{ill, "/healthz?exclude=a", 200, "ok"},
		{ill, "/healthz/a", 500, "internal server error: it is late\n"},
		{ill, "/healthz/syncloop", 500, "internal server error: it is late\n"},
	} {
		w := httptest.NewRecorder()
		tc.h.ServeHTTP(w, httptest.NewRequest("GET", tc.path, nil))
		if w.Code != tc.code || w.Body.String() != tc.body {
			t.Errorf("%s: %d %q, want %d %q", tc.path, w.Code, w.Body, tc.code, tc.body)
		}
		if tc.path == "/healthz" && (w.Header().Get("Content-Type") != "text/plain; charset=utf-8" || w.Header().Get("X-Content-Type-Options") != "nosniff") {
			t.Errorf("header %v", w.Header())
		}
	}
}
