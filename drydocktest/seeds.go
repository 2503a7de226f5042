package drydocktest

import (
	"context"
	"math/rand"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/go-logr/logr/funcr"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// pinRandomness gives the sources of randomness that client libraries share a seed, for
// the time of a test: crypto/rand (UUIDs of leader elections), math/rand (jitter), and
// apimachinery's (generated names). What draws from math/rand/v2 can't be reached.
func pinRandomness(t *testing.T, seed uint64) {
	cryptotest.SetGlobalRandom(t, seed)
	// rand.Seed does nothing unless this setting of the runtime says so.
	restore := setDebug("randseednop=0")
	rand.Seed(int64(seed)) // only the global source is shared with libraries
	restore()
	utilrand.Seed(int64(seed))
}

// setDebug changes a setting of the runtime, until restore is called.
func setDebug(setting string) (restore func()) {
	was, had := os.LookupEnv("GODEBUG")
	name, _, _ := strings.Cut(setting, "=")
	settings := slices.DeleteFunc(strings.Split(was, ","), func(s string) bool { return s == "" || strings.HasPrefix(s, name+"=") })
	os.Setenv("GODEBUG", strings.Join(append(settings, setting), ","))
	return func() {
		if had {
			os.Setenv("GODEBUG", was)
		} else {
			os.Unsetenv("GODEBUG")
		}
	}
}

// withoutBackoff takes from apimachinery's handlers of errors the one that holds up who
// reports errors more often than each millisecond: the bubble's time would pass for it.
func withoutBackoff(t *testing.T) {
	was := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, msg string, _ ...any) { t.Logf("%s: %v", msg, err) },
	}
	t.Cleanup(func() { utilruntime.ErrorHandlers = was })
}

// heapPercent is by how much the heap grows between two collections: what is live in a
// small cluster is so little that Go would collect many times a second.
const heapPercent = 200

// collectLess has garbage be collected less often for the time of a test, unless GOGC says how
// often.
func collectLess(t *testing.T) {
	if os.Getenv("GOGC") != "" {
		return
	}
	was := debug.SetGCPercent(heapPercent)
	t.Cleanup(func() { debug.SetGCPercent(was) })
}

// startSignals has the runtime start what it needs to tell of signals. It does so once, when
// somebody first asks for some, and would be of a bubble for ever if that was in one.
func startSignals() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	signal.Stop(c)
}

// logToTest has what libraries log by klog be the test's, which shows it if it fails.
func logToTest(t *testing.T) {
	state := klog.CaptureState()
	t.Cleanup(state.Restore)
	klog.SetLogger(funcr.New(func(prefix, args string) {
		t.Logf("%s %s %s", time.Now().UTC().Format("15:04:05.000"), prefix, args)
	}, funcr.Options{}))
}
