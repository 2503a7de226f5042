package prober

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
)

// telling is a rig that tells of its changes, and whose answers hold. silent: it
// forgets to tell.
type telling struct {
	*rig
	status func(types.UID)
	answer func(string)
	silent bool
}

func newTelling(t *testing.T, mode loop.ElisionMode) *telling {
	r := &telling{rig: newRig(t)}
	r.l = loop.New(loop.Options{Elision: mode})
	t.Cleanup(r.l.Close)
	r.g = r.l.NewGroup("kubelet")
	r.m = New(Options{Loop: r.l, Group: r.g, Statuses: r, Runner: r, Network: r, Recorder: r})
	r.at(time.Hour)
	r.pod.Spec.Containers = []v1.Container{{Name: "c", ReadinessProbe: probeSpec(httpGet(), func(p *v1.Probe) { p.TimeoutSeconds = 5 })}}
	return r
}

func (r *telling) OnStatusChange(fn func(types.UID))                { r.status = fn }
func (r *telling) OnAnswerChange(_ *loop.Group, fn func(id string)) { r.answer = fn }

func (r *telling) QuickHTTP(id string, req *http.Request) (HTTPAnswer, bool) {
	a, ok := r.rig.QuickHTTP(id, req)
	a.Holds = r.code == http.StatusOK
	return a, ok
}

// runs gives the pod a status with the container running, and tells of it.
func (r *telling) runs(id string) {
	r.running(id, true)
	if !r.silent && r.m.elision.parks {
		r.status(uid)
	}
}

// answers changes the answer, and tells of it.
func (r *telling) answers(code int) {
	r.code = code
	if !r.silent && r.m.elision.parks {
		r.answer("1")
	}
}

// What happens while ticks are left out comes to the same as without: between
// probes, while one would wait for its answer, and at a tick.
func TestElidedTicks(t *testing.T) {
	for _, at := range []time.Duration{41 * time.Second, 44 * time.Second, 50 * time.Second, 50*time.Second + 1} {
		for name, change := range map[string]func(r *telling){
			"trigger": func(r *telling) { r.m.TriggerReadiness(uid, "c") },
			"status":  func(r *telling) { r.runs("2") },
			"answer":  func(r *telling) { r.answers(http.StatusNotFound) },
			"remove":  func(r *telling) { r.m.RemovePod(r.pod) },
			"both":    func(r *telling) { r.m.TriggerReadiness(uid, "c"); r.runs("2") },
		} {
			var told [2]string
			for i, mode := range []loop.ElisionMode{loop.NoElide, loop.Elide} {
				r := newTelling(t, mode)
				r.took = 3 * time.Second
				r.runs("1")
				r.m.AddPod(r.pod)
				r.to(at)
				change(r)
				told[i] = fmt.Sprint(r.m.Workers(), r.m.Probes(), r.results("1"))
				r.to(at + 45*time.Second)
				told[i] += fmt.Sprint(r.m.Workers(), r.m.Probes(), r.results("1"), r.results("2"), strings.Join(r.events, "\n"))
			}
			if told[0] != told[1] {
				t.Errorf("%s at %s: with elision\n%s\nwithout\n%s", name, at, told[1], told[0])
			}
		}
	}
}

// A check of elision says who did not tell.
func TestCheckedTicks(t *testing.T) {
	for version, change := range map[string]func(r *telling){
		"statuses": func(r *telling) { r.runs("2") },
		"answers":  func(r *telling) { r.answers(http.StatusNotFound) },
	} {
		for _, silent := range []bool{false, true} {
			r := newTelling(t, loop.CheckElision)
			r.runs("1")
			r.m.AddPod(r.pod)
			r.to(41 * time.Second)
			r.silent = silent
			change(r)
			err := r.l.RunUntil(r.l.Now().Add(time.Minute))
			if silent != (err != nil && strings.Contains(err.Error(), fmt.Sprintf("Readiness probe of container c of p_default(u) was left out, but what version %q", version))) {
				t.Errorf("%s changed, silent %t: %v", version, silent, err)
			}
		}
	}
}
