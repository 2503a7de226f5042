package drydocktest

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// troubles are tests that go wrong, and what is said of it.
var troubles = []struct {
	name string
	run  func(t *testing.T)
	want []string
}{
	{"lock across a request", inRun(func(t *testing.T, c *Cluster) {
		clients := kubernetes.NewForConfigOrDie(c.Config("locks"))
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				mu.Lock()
				defer mu.Unlock()
				_, _ = clients.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			})
		}
		wg.Wait()
	}), []string{"the bubble's clock stands still", "troubles_test.go:", "Don't hold locks across requests"}},
	{"goroutine left behind", inRun(func(*testing.T, *Cluster) {
		go func() { <-make(chan int) }()
	}), []string{"1 goroutine of the test wait", "troubles_test.go:", "has to end with its context"}},
	{"fatal in mid-run", inRun(func(t *testing.T, c *Cluster) {
		c.Go("waits", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		t.Fatal("the user's own failure")
	}), []string{"the user's own failure"}},
	{"panic in a controller", inRun(func(_ *testing.T, c *Cluster) {
		c.Go("panics", func(context.Context) error { panic("of the controller") })
		time.Sleep(time.Second)
	}), []string{"panic: of the controller", "troubles_test.go:"}},
	{"panic in the simulation", inRun(func(t *testing.T, c *Cluster) {
		c.mustBetween(func() {
			c.session.Cluster().API().Loop().Root().After(time.Second, func() { panic("of the simulation") })
		})
		time.Sleep(time.Minute)
		_, err := kubernetes.NewForConfigOrDie(c.Config("late")).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		t.Log(err)
	}), []string{"the simulation failed", "of the simulation", "troubles_test.go:"}},
	{"error of a process", inRun(func(_ *testing.T, c *Cluster) {
		c.Go("fails", func(context.Context) error { return errors.New("controller with name shop already exists") })
		time.Sleep(time.Second)
	}), []string{"fails: controller with name", "SkipNameValidation"}},
	{"process without an end", inRun(func(_ *testing.T, c *Cluster) {
		c.Go("stays", func(context.Context) error {
			time.Sleep(time.Hour)
			return nil
		})
	}), []string{"stays has not returned 1m0s after its context ended", "troubles_test.go:"}},
	{"context from outside", func(t *testing.T) {
		outside, cancel := context.WithCancel(context.Background())
		defer cancel()
		done := outside.Done()
		inRun(func(*testing.T, *Cluster) { <-done })(t)
	}, []string{"the bubble's clock stands still", "made outside of the bubble", "troubles_test.go:"}},
	{"socket", inRun(func(t *testing.T, _ *Cluster) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = l.Accept()
	}), []string{"the bubble's clock stands still", "waits for a socket"}},
	{"t.Run inside", inRun(func(t *testing.T, _ *Cluster) { t.Run("x", func(*testing.T) {}) }), []string{"t.Run called inside synctest bubble", "a Run of its own"}},
	{"t.Parallel inside", inRun(func(t *testing.T, _ *Cluster) { t.Parallel() }), []string{"t.Parallel called inside synctest bubble", "a Run of its own"}},
	{"t.Deadline inside", inRun(func(t *testing.T, _ *Cluster) { t.Deadline() }), []string{"t.Deadline called inside synctest bubble", "a Run of its own"}},
	{"parallel ancestor", func(t *testing.T) {
		t.Parallel()
		t.Run("x", inRun(func(*testing.T, *Cluster) {}))
	}, []string{"remove t.Parallel()"}},
	{"nested", inRun(func(t *testing.T, _ *Cluster) { Run(t, Options{}, func(*testing.T, *Cluster) {}) }), []string{"it can't be nested"}},
	{"no end", inRun(func(*testing.T, *Cluster) { <-make(chan int) }), []string{"has not ended by", "troubles_test.go:"}},
}

// TestProcessLeavesGoroutines: what a process leaves behind is told, and is no failure, since
// it would end with it.
func TestProcessLeavesGoroutines(t *testing.T) {
	if os.Getenv(troubleVar) == "left by a process" {
		inRun(func(t *testing.T, c *Cluster) {
			c.Go("leaves", func(ctx context.Context) error {
				go func() { go func() { <-make(chan int) }() }()
				return nil
			})
		})(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestProcessLeavesGoroutines$", "-test.timeout=60s", "-test.v")
	cmd.Env = append(os.Environ(), troubleVar+"=left by a process")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "leaves has left 1 goroutine behind") {
		t.Errorf("%v\n%s", err, out)
	}
}

// inRun is a test with a cluster.
func inRun(body func(t *testing.T, c *Cluster)) func(t *testing.T) {
	return func(t *testing.T) { Run(t, Options{Limit: 3 * time.Hour}, body) }
}

// troubleVar names the trouble that a process of this test is to have.
const troubleVar = "DRYDOCKTEST_TROUBLE"

// TestTrouble has the trouble that the environment asks for.
func TestTrouble(t *testing.T) {
	for _, tr := range troubles {
		if tr.name == os.Getenv(troubleVar) {
			tr.run(t)
		}
	}
}

// TestTroubles: what goes wrong ends its test in seconds, and says what it was.
func TestTroubles(t *testing.T) {
	for _, tr := range troubles {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestTrouble$", "-test.timeout=60s")
			cmd.Env = append(os.Environ(), troubleVar+"="+tr.name)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("the test passed:\n%s", out)
			}
			for _, want := range tr.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("%q is not said:\n%s", want, out)
				}
			}
		})
	}
}
