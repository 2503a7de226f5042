package sim_test

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/sim"
)

// TestInhibitDelay has machines with one pod that ignores SIGTERM shut down, and
// looks when they are off.
func TestInhibitDelay(t *testing.T) {
	for _, tc := range []struct {
		name   string
		delay  time.Duration
		dropIn map[string]string
		grace  time.Duration // of ordinary pods, with none for critical ones
		off    time.Duration // after the shutdown
	}{
		{name: "not configured", off: 0},
		{name: "logind grants less, and is overridden", grace: 20 * time.Second, off: 20 * time.Second},
		{name: "logind grants more", delay: time.Minute, grace: 20 * time.Second, off: 20 * time.Second},
		{name: "a drop-in after the kubelet's has the last word: nobody holds it up", grace: 20 * time.Second,
			dropIn: map[string]string{"zz.conf": "[Login]\nInhibitDelayMaxSec=10s\n"}, off: 0},
		{name: "one before it has not", grace: 20 * time.Second,
			dropIn: map[string]string{"10-vendor.conf": "[Login]\nInhibitDelayMaxSec=3\n", "zz.txt": "InhibitDelayMaxSec=1", "zz.conf": "InhibitDelayMaxSec=soon"}, off: 20 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := sim.New(sim.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			n, err := c.AddNode(sim.NodeOptions{
				Name: "n", InhibitDelay: tc.delay,
				Kubelet: &kubeletconfig.KubeletConfiguration{ShutdownGracePeriod: metav1.Duration{Duration: tc.grace}},
				Runtime: fakecri.Options{Programs: []fakecri.Program{{Behaviour: fakecri.Behaviour{OnTerm: fakecri.OnTerm{Ignore: true}}}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			for file, text := range tc.dropIn {
				if err := n.FS().MkdirAll("/etc/systemd/logind.conf.d", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := n.FS().WriteFile("/etc/systemd/logind.conf.d/"+file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "app", Image: "app:1"}}}}
			c.At(time.Second, func() {
				if _, err := c.API().Apply(pod); err != nil {
					t.Error(err)
				}
			})
			const at = time.Minute
			runs := func() bool { return n.Kubelet() != nil }
			if err := c.RunUntil(at); err != nil {
				t.Fatal(err)
			}
			if err := n.CancelShutdown(); err == nil || err.Error() != "node n: there is no shutdown to call off" {
				t.Errorf("call off nothing: %v", err)
			}
			if err := n.Shutdown(0); err != nil {
				t.Fatal(err)
			}
			if runs() != (tc.off > 0) {
				t.Errorf("held up: %v", runs())
			}
			if tc.off > 0 {
				if err := n.Shutdown(0); err == nil || !strings.HasSuffix(err.Error(), "the machine shuts down already") {
					t.Errorf("shut down twice: %v", err)
				}
				if err := c.RunUntil(at + tc.off - time.Second); err != nil {
					t.Fatal(err)
				}
				if !runs() {
					t.Errorf("off a second before its time")
				}
			}
			if err := c.RunUntil(at + tc.off + time.Second); err != nil {
				t.Fatal(err)
			}
			if runs() {
				t.Errorf("not off a second after its time")
			}
			if err := n.Shutdown(0); err == nil || err.Error() != "node n: the machine is off" {
				t.Errorf("shut down a machine that is off: %v", err)
			}
		})
	}
}
