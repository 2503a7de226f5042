//go:build linux

package server_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
)

func TestControl(t *testing.T) {
	r := newRig(t, sleeper)
	ctx := testContext(t)
	r.runSandbox(t, "web")
	h := r.Server.Server().Control(func(body []byte) ([]fakecri.Fault, error) {
		if string(body) == "bad" {
			return nil, errors.New("it is\nbad")
		}
		return []fakecri.Fault{{Method: string(body), Error: &fakecri.FaultError{Code: "Aborted"}}}, nil
	})
	do := func(method, path, body string, want int) string {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		if w.Code != want {
			t.Errorf("%s %s: %d %s, want %d", method, path, w.Code, w.Body, want)
		}
		return strings.TrimSpace(w.Body.String())
	}
	status := func(want codes.Code) {
		t.Helper()
		_, err := r.rt.Status(ctx, &runtimeapi.StatusRequest{})
		wantCode(t, "Status", err, want)
	}

	var st map[string]any
	if err := json.Unmarshal([]byte(do("GET", "/state", "", 200)), &st); err != nil || st["sandboxes"] != 1.0 || st["daemon"] != true {
		t.Errorf("state: %v, %v", st, err)
	}
	if got := do("GET", "/faults", "", 200); got != "[]" {
		t.Errorf("faults: %s", got)
	}
	if got := do("POST", "/faults", "Status", 200); got != `[{"id":1,"method":"Status","code":"Aborted"}]` {
		t.Errorf("set: %s", got)
	}
	status(codes.Aborted)
	do("POST", "/faults", "ListImages", 200)
	if got := do("DELETE", "/faults?id=1", "", 200); got != `{"removed":1}` {
		t.Errorf("cleared: %s", got)
	}
	status(codes.OK)
	if got := do("GET", "/faults", "", 200); !strings.Contains(got, `"id":2`) || strings.Contains(got, `"id":1`) {
		t.Errorf("faults: %s", got)
	}
	do("DELETE", "/faults?id=1", "", 404)
	do("DELETE", "/faults?id=x", "", 400)
	if got := do("DELETE", "/faults", "", 200); got != `{"removed":1}` {
		t.Errorf("cleared: %s", got)
	}
	if got := do("POST", "/faults", "bad", 400); got != `{"error":"it is bad"}` {
		t.Errorf("bad: %s", got)
	}
	if got := do("POST", "/faults", "NoMethod", 400); got != `{"error":"faults[0]: method: no CRI method \"NoMethod\""}` {
		t.Errorf("no method: %s", got)
	}
	open := r.subscribe(t, ctx)
	do("POST", "/daemon", `{"down": true}`, 200)
	status(codes.Unavailable)
	if _, err := r.rt.Version(ctx, &runtimeapi.VersionRequest{}); err == nil || !strings.Contains(err.Error(), "the runtime's daemon is down") {
		t.Errorf("Version while down: %v", err)
	}
	_, err := open.Recv()
	wantCode(t, "an open stream", err, codes.Unavailable)
	stream, err := r.rt.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	wantCode(t, "GetContainerEvents", err, codes.Unavailable)
	do("POST", "/daemon", `{"up": true}`, 200)
	status(codes.OK)
	do("POST", "/daemon", `{}`, 400)
	do("GET", "/nothing", "", 404)
	do("PUT", "/faults", "", http.StatusNotFound)
	r.Close()
	do("GET", "/state", "", 503)
}

// FailNext fails one call.
func TestFailNext(t *testing.T) {
	r := newRig(t)
	ctx := testContext(t)
	r.FailNext("ListImages", "ResourceExhausted", "after %d", 1)
	_, err := r.img.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	wantCode(t, "the first", err, codes.ResourceExhausted)
	_, err = r.img.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	wantCode(t, "the second", err, codes.OK)
}
