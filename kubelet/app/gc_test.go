//go:build linux

package app

import (
	"testing"
	"time"

	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
)

// TestGCPolicy: the flags for dead containers, and that without them dead
// containers are kept as ever.
func TestGCPolicy(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want kuberuntime.GCPolicy
	}{
		{nil, kuberuntime.DefaultGCPolicy()},
		{
			[]string{"--minimum-container-ttl-duration=10s", "--maximum-dead-containers-per-container=3", "--maximum-dead-containers=40"},
			kuberuntime.GCPolicy{MinAge: 10 * time.Second, MaxPerPodContainer: 3, MaxContainers: 40},
		},
	} {
		cl, _, err := commandOf(t, append([]string{"--enable-server=false"}, tt.args...)...)
		if err != nil {
			t.Fatal(err)
		}
		if got := *cl.flags.gcPolicy(); got != tt.want {
			t.Errorf("%v: %+v, want %+v", tt.args, got, tt.want)
		}
		if got := Ignored(cl.config, cl.set); got != nil {
			t.Errorf("%v: %v", tt.args, got)
		}
	}
}
