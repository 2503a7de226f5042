package kubelet

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubepod "github.com/drydock-sim/drydock/kubelet/internal/pod"
)

// TestRuntimeStateTells: who parks on the state of the runtime is woken by whatever
// sets it.
func TestRuntimeStateTells(t *testing.T) {
	s := newRuntimeState(loop.New(loop.Options{}))
	for name, set := range map[string]func(error){"runtime": s.setRuntimeError, "network": s.setNetworkError, "storage": s.setStorageError} {
		before := s.version.Count()
		if set(errors.New("down")); s.version.Count() == before {
			t.Errorf("an error of the %s is not told", name)
		}
	}
}

// TestAdmissionHearsOfPods: what the pods take is counted anew if one is another.
func TestAdmissionHearsOfPods(t *testing.T) {
	known := &knownPods{pods: kubepod.NewManager()}
	kl := &Kubelet{base: base{l: loop.New(loop.Options{})}}
	a := (&elision{kl: kl}).admission(known).(*elidedAdmission)
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "a"}}
	known.pods.AddPod(pod)
	if a.unjudged != pod.UID {
		t.Errorf("unjudged is %q", a.unjudged)
	}
	a.unjudged, a.good = "", true
	known.pods.RemovePod(pod)
	if a.good {
		t.Error("the sum is good without the pod that it counts")
	}
}
