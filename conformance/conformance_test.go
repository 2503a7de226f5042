//go:build linux

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/fakecritest"
)

type ctxType = context.Context

func errorOf(c codes.Code) error { return status.Error(c, "it misbehaves") }

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// fakeRegistry names images; the fake runtime pulls them from nowhere.
type fakeRegistry struct{}

const fakeDigest = "sha256:824fa5c15c71f219fa92577e981648c240a0abe0d06cdbee5376af4235b7decb"

func (fakeRegistry) Addr() string { return "127.0.0.1:5999" }
func (r fakeRegistry) Ref(image string) string {
	if im, ok := strings.CutSuffix(image, "@"); ok {
		repo, _, _ := strings.Cut(im, ":")
		return r.Addr() + "/drydock/" + repo + "@" + fakeDigest
	}
	return r.Addr() + "/drydock/" + image
}
func (fakeRegistry) Digest(string) string       { return fakeDigest }
func (fakeRegistry) ConfigDigest(string) string { return "sha256:" + strings.Repeat("1", 64) }
func (fakeRegistry) Pulls(string) int           { return 0 }

// leftOver lists what a runtime has.
func leftOver(t *testing.T, srv *fakecritest.Server) string {
	t.Helper()
	c, err := dial(srv.Endpoint(), srv.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	ctx := t.Context()
	if ctx.Err() != nil {
		ctx = context.Background()
	}
	b, err := c.rt.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := c.rt.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	im, err := c.im.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	images := 0
	for _, x := range im.Images {
		if ours("127.0.0.1:5999/", x) {
			images++
		}
	}
	return fmt.Sprintf("%d sandboxes, %d containers, %d images", len(b.Items), len(n.Containers), images)
}

// TestFakecriConforms runs the direct checks, and unless in a hurry the
// scenarios too, against the fake runtime behind its socket.
func TestFakecriConforms(t *testing.T) {
	t.Parallel() // it waits, mostly
	srv := fakecritest.NewServer(t)
	focus := ""
	if testing.Short() {
		focus = "^cri/|pod-succeeds|kubelet-restart"
	}
	r, err := Run(t.Context(), Options{Endpoint: srv.Endpoint(), Registry: fakeRegistry{}, Focus: regexp.MustCompile(focus), Parallel: atOnce, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	passed := 0
	for _, x := range r.Results {
		switch {
		case x.Status == Failed:
			var b bytes.Buffer
			WriteLine(&b, x, reportRPCs)
			t.Errorf("%s", b.String())
		case x.Status == Skipped && !strings.HasPrefix(x.Reason, "--focus") && os.Geteuid() == 0:
			t.Errorf("%s was skipped: %s", x.Name, x.Reason)
		case x.Status == Passed:
			passed++
		}
	}
	if passed < 70 {
		t.Errorf("only %d checks passed", passed)
	}
	if got := leftOver(t, srv); got != "0 sandboxes, 0 containers, 0 images" {
		t.Errorf("left over: %s", got)
	}
}

// TestGuest runs checks beside somebody else's pod, which has to stay as it is,
// and has a run end by interruption; nothing of it may be left.
func TestGuest(t *testing.T) {
	t.Parallel() // it waits, mostly
	srv := fakecritest.NewServer(t)
	c, err := dial(srv.Endpoint(), srv.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	other, err := c.rt.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "other", Namespace: "default", Uid: "1"},
		Labels:   map[string]string{"io.kubernetes.pod.name": "other", "io.kubernetes.pod.namespace": "default", "io.kubernetes.pod.uid": "1"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(4*time.Second, cancel)
	r, err := Run(ctx, Options{Endpoint: srv.Endpoint(), Registry: fakeRegistry{}, Focus: regexp.MustCompile("kubelet/(graceful-stop|pod-deletion|grace-period)|stop/timeout")})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || r.Conforms() {
		t.Errorf("interrupted %v, conforms %v", r.Interrupted, r.Conforms())
	}
	for _, x := range r.Results {
		if x.Name == "kubelet/pod-deletion" && (x.Status != Skipped || x.Reason != "interrupted") {
			t.Errorf("%s %s: %s", x.Name, x.Status, x.Reason)
		}
	}
	s, err := c.rt.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: other.PodSandboxId})
	if err != nil || s.Status.State != ready {
		t.Errorf("somebody else's pod is %v: %v", s.GetStatus().GetState(), err)
	}
	if got := leftOver(t, srv); got != "1 sandboxes, 0 containers, 0 images" {
		t.Errorf("left over: %s", got)
	}
}

// TestPanicAndLeftovers has a check that panics after it made a pod, and a
// runtime that removes nothing.
func TestPanicAndLeftovers(t *testing.T) {
	t.Parallel() // it waits, mostly
	srv := fakecritest.NewServer(t)
	c, err := dial(srv.Endpoint(), srv.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	o := Options{Endpoint: srv.Endpoint(), Registry: fakeRegistry{}}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	r := &suite{o: o, name: "testrun", registry: fakeRegistry{}, clients: c, dir: t.TempDir(), report: &Report{}}
	bad := &check{name: "cri/bad", level: Required, expect: "no panic", run: func(ctx context.Context, t *T) {
		t.running(ctx)
		panic("oh")
	}}
	r.runAll(t.Context(), []*check{bad})
	if x := r.report.Results[0]; x.Status != Failed || !strings.Contains(strings.Join(x.Came, ""), "panicked: oh, at conformance/conformance_test.go:") {
		t.Errorf("%+v", x)
	}
	if got := leftOver(t, srv); got != "0 sandboxes, 0 containers, 0 images" {
		t.Errorf("left over: %s", got)
	}
	sock := proxy(t, srv.Endpoint(), ignores("RemovePodSandbox"))
	rep, err := Run(t.Context(), Options{Endpoint: sock, Registry: fakeRegistry{}, Focus: regexp.MustCompile("cri/sandbox/run$")})
	if err != nil {
		t.Fatal(err)
	}
	last := rep.Results[len(rep.Results)-1]
	if last.Name != "cri/leftovers" || last.Status != Failed || rep.Conforms() {
		t.Errorf("%+v", last)
	}
}

func TestReports(t *testing.T) {
	r := &Report{Results: []Result{
		{Name: "cri/a/good", Level: Required, Status: Passed, Expected: "it works"},
		{Name: "cri/a/bad", Level: Required, Status: Failed, Expected: "it works", Came: []string{"it does\x00n't <at> all"}, RPCs: []RPC{{Method: "Version", Request: "{}", Error: "Unknown: no"}}},
		{Name: "cri/a/left", Level: Required, Status: Skipped, Reason: "--skip x"},
		{Name: "cri/b/new", Level: Optional, Status: Failed, Came: []string{"no"}},
	}}
	var text, js, ju bytes.Buffer
	for _, x := range r.Results {
		WriteLine(&text, x, 3)
	}
	r.WriteSummary(&text)
	for _, want := range []string{"passed   cri/a/good", "FAILED   cri/a/bad", "expected: it works", "Version {} -> error Unknown: no", "skipped  cri/a/left: --skip x", "required: 1 passed, 1 failed, 1 skipped", "does not conform"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, text.String())
		}
	}
	if err := r.WriteJSON(&js); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(js.Bytes(), &back); err != nil || len(back.Results) != 4 || back.Results[1].RPCs[0].Method != "Version" {
		t.Errorf("%v: %s", err, js.String())
	}
	if err := r.WriteJUnit(&ju); err != nil {
		t.Fatal(err)
	}
	var suites junitSuites
	if err := xml.Unmarshal(ju.Bytes(), &suites); err != nil {
		t.Fatalf("%v: %s", err, ju.String())
	}
	if suites.Tests != 4 || suites.Failures != 1 || suites.Skipped != 2 || suites.Suites[0].Cases[1].Failure == nil {
		t.Errorf("%+v", suites)
	}
}

func TestOptions(t *testing.T) {
	for _, x := range []struct {
		o    Options
		want string
	}{
		{Options{}, "--runtime-endpoint: which runtime?"},
		{Options{Endpoint: "containerd"}, `--runtime-endpoint: "containerd" is no socket`},
		{Options{Endpoint: "tcp://127.0.0.1:1"}, "is no socket"},
		{Options{Endpoint: "/x", ImageEndpoint: "unix://x"}, "--image-endpoint"},
		{Options{Endpoint: "/x", Parallel: -1}, "--parallel: -1 is negative"},
		{Options{Endpoint: os.TempDir()}, "is there and is no socket"},
		{Options{Endpoint: "/dev/null/x"}, "--runtime-endpoint: stat /dev/null/x: not a directory"},
		{Options{Endpoint: "/nowhere/at/all"}, "no container runtime answers there: dial unix /nowhere/at/all: connect: no such file or directory"},
		{Options{Endpoint: silent(t)}, "no container runtime answers there: nothing came within 10s"},
	} {
		_, err := Run(ctxOf(t, 2*time.Second), x.o)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.o, err, x.want)
		}
	}
}

// silent is a socket that takes connections and says nothing.
func silent(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "s")
	lis, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lis.Close() })
	return path
}

func ctxOf(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestRewriteImages(t *testing.T) {
	in := "- {name: a, image: \"drydock-actor:1\"}\n  image: missing/drydock-actor:1\n  x: 'drydock-actor@sha256:" + strings.Repeat("0", 64) + "'\n  y: quay.io/drydock-actor:1 drydock-actors:1\n"
	got := string(rewriteImages([]byte(in), fakeRegistry{}))
	want := "- {name: a, image: \"127.0.0.1:5999/drydock/drydock-actor:1\"}\n  image: 127.0.0.1:5999/drydock/missing/drydock-actor:1\n  x: '127.0.0.1:5999/drydock/drydock-actor@" + fakeDigest + "'\n  y: quay.io/drydock-actor:1 drydock-actors:1\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestParseLog(t *testing.T) {
	const at = "2026-01-02T03:04:05.000000006Z "
	lines, err := parseLog([]byte(at + "stdout P ab\n" + at + "stdout F c  d\n" + at + "stderr F \n" + at + "stdout F unfini"))
	if err != nil || len(lines) != 3 || written(lines, "stdout") != "abc  d\n" || written(lines, "stderr") != "\n" {
		t.Errorf("%v: %+v", err, lines)
	}
	for _, bad := range []string{"text\n", "yesterday stdout F x\n", at + "stdin F x\n", at + "stdout Q x\n", at + "stdout F\n"} {
		if _, err := parseLog([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
