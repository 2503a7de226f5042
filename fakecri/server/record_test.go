//go:build linux

package server_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/fakecri/fakecritest"
	"github.com/drydock-sim/drydock/fakecri/server"
)

type recordedLine struct {
	Time        time.Time
	Method      string
	Request     map[string]any
	Response    map[string]any
	ResponseCut *struct {
		Bytes int
		Begin string
	}
	Streamed *int
	Code     string
	Error    string
	TookMs   float64
}

func TestRecord(t *testing.T) {
	var buf bytes.Buffer
	r := newRig(t, sleeper, fakecritest.WithOptions(func(o *server.Options) { o.Record = &buf }),
		fakecritest.WithRuntime(func(o *fakecri.Options) {
			o.Programs = append([]fakecri.Program{{Match: fakecri.Match{Container: "loud"}, Behaviour: fakecri.Behaviour{
				Exec: []fakecri.ExecRule{{Output: strings.Repeat("x", 100_000)}}}}}, o.Programs...)
		}))
	ctx := testContext(t)
	sandbox := r.runSandbox(t, "web")
	id := r.runContainer(t, sandbox, containerConfig("loud"))
	if _, err := r.rt.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"shout"}}); err != nil {
		t.Fatal(err)
	}
	_, _ = r.rt.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: "nope"})
	_, _ = r.img.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: "new:1"}, Auth: &runtimeapi.AuthConfig{Username: "me", Password: "secret-password"}})
	stream, err := r.rt.StreamContainers(ctx, &runtimeapi.StreamContainersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = stream.Recv()
	}
	r.Close() // flushes

	if strings.Contains(buf.String(), "secret-password") {
		t.Error("a password is in the record")
	}
	var got []recordedLine
	for _, line := range strings.Split(strings.TrimSpace(buf.String()), "\n") {
		var l recordedLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v in line %.200s", err, line)
		}
		if len(line) > 64<<10 {
			t.Errorf("a line of %d bytes", len(line))
		}
		if l.Time.IsZero() || l.TookMs < 0 {
			t.Errorf("line %+v", l)
		}
		got = append(got, l)
	}
	want := []struct{ method, code string }{
		{"RunPodSandbox", "OK"}, {"CreateContainer", "OK"}, {"StartContainer", "OK"}, {"ExecSync", "OK"},
		{"ContainerStatus", "NotFound"}, {"PullImage", "OK"}, {"StreamContainers", "OK"},
	}
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
	for i, w := range want {
		if got[i].Method != w.method || got[i].Code != w.code {
			t.Errorf("line %d: %s %s, want %s %s", i, got[i].Method, got[i].Code, w.method, w.code)
		}
	}
	if got[0].Response["podSandboxId"] != sandbox || got[0].Request["config"] == nil {
		t.Errorf("RunPodSandbox: %v, %v", got[0].Request, got[0].Response)
	}
	if got[4].Error == "" || got[4].Response != nil {
		t.Errorf("ContainerStatus: %+v", got[4])
	}
	if got[6].Streamed == nil || *got[6].Streamed != 1 {
		t.Errorf("StreamContainers: %+v", got[6])
	}
}
