package podworkers

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

// settledSyncer is a fakeSyncer whose syncs have nothing to do, as a kubelet's
// elision remembers them.
type settledSyncer struct {
	*fakeSyncer
	w *Workers
}

func (q settledSyncer) SyncPod(ctx context.Context, t kubetypes.SyncPodType, pod, mirror *v1.Pod, status *kubecontainer.PodStatus) (SyncResult, error) {
	result, err := q.fakeSyncer.SyncPod(ctx, t, pod, mirror, status)
	s := q.w.records.get(pod.UID)
	s.memo = syncMemo{pod: s.active.Pod, mirror: s.run.MirrorPod}
	return result, err
}

// Of a pod whose object is replaced no record keeps the old one: not while an
// update is pending, nor while a run is waited for or in progress, nor after.
func TestReplacedObjectsAreNotKept(t *testing.T) {
	for _, tc := range []struct {
		name string
		at   float64 // when it is replaced; the runs begin at 0 and 2, each for a second
	}{
		{"before the run", 0}, {"during the run", 0.5}, {"waiting for the cache", 1.0000005}, {"during the second", 2.5}, {"idle", 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, f, run := workersWorld(t)
			w.Syncer = settledSyncer{f, w}
			old, mirror := testPod(), testPod()
			next, nextMirror := testPod(), testPod()
			w.UpdatePod(UpdatePodOptions{Pod: old, MirrorPod: mirror, UpdateType: kubetypes.SyncPodCreate})
			if tc.at > 0 {
				run(0.25)
				w.UpdatePod(UpdatePodOptions{Pod: old, MirrorPod: mirror, UpdateType: kubetypes.SyncPodUpdate})
				run(tc.at)
			}
			w.ReplacePod("u", old, next)
			w.ReplacePod("u", mirror, nextMirror)
			s := w.records.get("u")
			for _, o := range [...]*UpdatePodOptions{s.pending, s.run} {
				if o != nil && (o.Pod != next || o.MirrorPod != nextMirror) {
					t.Error("an update has the old object")
				}
			}
			run(20)
			if s.active.Pod != next || s.active.MirrorPod != nextMirror || s.memo.pod != next || s.memo.mirror != nextMirror {
				t.Errorf("the old object is kept: active %t %t, memo %t %t", s.active.Pod == old, s.active.MirrorPod == mirror, s.memo.pod == old, s.memo.mirror == mirror)
			}
			if s.pending != nil || s.run != nil {
				t.Error("an idle record keeps an update or a run")
			}
			cached, shared := &v1.PodStatus{}, &v1.PodStatus{}
			s.memo.status = cached
			w.ReplaceStatus("u", cached, shared)
			if s.memo.status != shared {
				t.Error("the old status is kept")
			}
		})
	}
}
