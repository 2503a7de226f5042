//go:build linux

package fakecritest_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/fakecri/fakecritest"
	"github.com/drydock-sim/drydock/ground/loop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var sockets []string
	t.Run("server", func(t *testing.T) {
		// Two servers of one test do not get in each other's way.
		a, b := fakecritest.NewServer(t), fakecritest.NewServer(t, fakecritest.WithRuntime(func(o *fakecri.Options) { o.Name = "other" }))
		for _, s := range []*fakecritest.Server{a, b} {
			sockets = append(sockets, strings.TrimPrefix(s.Endpoint(), "unix://"))
		}
		rt := runtimeapi.NewRuntimeServiceClient(b.Dial())
		v, err := rt.Version(ctx, &runtimeapi.VersionRequest{})
		if err != nil || v.RuntimeName != "other" {
			t.Errorf("Version: %v, %v", v, err)
		}

		remove := b.Fault(fakecri.Fault{Method: "Status", Error: &fakecri.FaultError{Code: "Aborted"}})
		for _, want := range []codes.Code{codes.Aborted, codes.OK} {
			if _, err := rt.Status(ctx, &runtimeapi.StatusRequest{}); status.Code(err) != want {
				t.Errorf("Status: %v, want %s", err, want)
			}
			remove()
		}
		b.Do(func(r *fakecri.Runtime) { r.SetNetworkReady(false, "Gone", "no network") })
		st, err := rt.Status(ctx, &runtimeapi.StatusRequest{})
		if err != nil || st.Status.Conditions[1].Status || st.Status.Conditions[1].Reason != "Gone" {
			t.Errorf("Status: %v, %v", st, err)
		}
		a.Close()
		a.Close()
	})
	for _, s := range sockets {
		if _, err := os.Stat(s); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", s, err)
		}
	}
}

// troubled is a test that keeps what it is told of.
type troubled struct {
	testing.TB
	errors []string
}

func (t *troubled) Errorf(format string, args ...any) {
	t.errors = append(t.errors, fmt.Sprintf(format, args...))
}

// TestTroubleInside: what went wrong inside the server fails the test that it is for. A test's
// Fatal, which is Goexit, must not be called on the loop, and ends it.
func TestTroubleInside(t *testing.T) {
	task := func(l *loop.Loop, fn func()) { l.Root().Go("body", func(context.Context) { fn() }) }
	for _, tc := range []struct {
		name string
		body func(*loop.Loop)
		ends bool
		want string
	}{
		{"nothing", func(*loop.Loop) {}, false, "[]"},
		{"a panic", func(l *loop.Loop) { task(l, func() { panic("ouch") }) }, false, "[fakecritest: 1 panics inside the server; see the log]"},
		{"a Goexit in a task", func(l *loop.Loop) { task(l, runtime.Goexit) }, true, "[fakecritest: the loop: loop fakecri: task body called runtime.Goexit]"},
		{"a Goexit in a function", func(l *loop.Loop) { runtime.Goexit() }, true, "[fakecritest: the loop: a function on the loop called runtime.Goexit]"},
	} {
		in := &troubled{TB: t}
		s := fakecritest.NewServer(in)
		l := s.Server().Loop()
		s.Do(func(*fakecri.Runtime) { tc.body(l) })
		if tc.ends {
			<-s.Server().Done()
		} else {
			s.Do(func(*fakecri.Runtime) {}) // after the task
		}
		s.Close()
		if got := fmt.Sprint(in.errors); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

// TestFaults sets faults from the start and for one call, and takes them back.
func TestFaults(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	unavailable := &fakecri.FaultError{Code: "Unavailable"}
	s := fakecritest.NewServer(t,
		fakecritest.WithFaults(fakecri.Fault{Method: "Status", Error: unavailable}),
		fakecritest.WithFaults(fakecri.Fault{Method: "Version", Error: unavailable}))
	rt := runtimeapi.NewRuntimeServiceClient(s.Dial())
	check := func(when string, wantStatus, wantVersion codes.Code) {
		t.Helper()
		if _, err := rt.Status(ctx, &runtimeapi.StatusRequest{}); status.Code(err) != wantStatus {
			t.Errorf("%s: Status: %v, want %s", when, err, wantStatus)
		}
		if _, err := rt.Version(ctx, &runtimeapi.VersionRequest{}); status.Code(err) != wantVersion {
			t.Errorf("%s: Version: %v, want %s", when, err, wantVersion)
		}
	}
	check("from the start", codes.Unavailable, codes.Unavailable)
	s.ClearFaults()
	check("cleared", codes.OK, codes.OK)
	s.FailNext("Version", "Aborted", "try %s", "later")
	check("next", codes.OK, codes.Aborted)
	check("after it", codes.OK, codes.OK)
}
