package state

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

func cpu(request string) v1.ResourceRequirements {
	return v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(request)}}
}

func pod(requests ...string) *v1.Pod {
	p := &v1.Pod{}
	p.UID = "uid-1"
	for i, r := range requests {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: string(rune('a' + i)), Resources: cpu(r)})
	}
	return p
}

func TestSubstitute(t *testing.T) {
	p := pod("100m", "200m")
	e := &Entry{Allocated: Of(p), Actuated: Of(p)}
	if got, differs := e.Substitute(p); got != p || differs {
		t.Error("a pod with what it asks for is not itself")
	}
	more := pod("150m", "200m")
	got, differs := e.Substitute(more)
	if !differs || got == more || got.Spec.Containers[0].Resources.Requests.Cpu().String() != "100m" {
		t.Errorf("got %v", got.Spec.Containers)
	}
	if more.Spec.Containers[0].Resources.Requests.Cpu().String() != "150m" {
		t.Error("the pod was written to")
	}
	if again, _ := e.Substitute(more); again != got {
		t.Error("not the same copy again")
	}
	if e.MatchesSpec(more) {
		t.Error("settled")
	}
	e.Allocate(Of(more))
	if got, differs := e.Substitute(more); differs || got != more {
		t.Error("still differs")
	}
	if e.MatchesSpec(more) {
		t.Error("settled before it is actuated")
	}
	e.Actuate("a", more.Spec.Containers[0].Resources)
	if !e.MatchesSpec(more) {
		t.Error("not settled")
	}
}

func TestPodLevel(t *testing.T) {
	limits := &v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}}
	p := pod("100m")
	p.Spec.Resources = limits
	e := &Entry{Allocated: Of(p)}
	more := pod("100m")
	more.Spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse("2Gi")}}
	if got, differs := e.Substitute(more); !differs || got.Spec.Resources != limits {
		t.Errorf("got %v", got.Spec.Resources)
	}
}

func TestCheckpoint(t *testing.T) {
	p := pod("100m")
	p.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}
	in := map[types.UID]Resources{"uid-1": Of(p), "uid-0": Of(pod("5"))}
	file, err := Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	// The form is upstream's.
	if s := string(file); !strings.HasPrefix(s, `{"data":"{\"entries\":{\"uid-0\":{\"ContainerResources\":{\"a\":{\"requests\":{\"cpu\":\"5\"}}}},\"uid-1\"`) || !strings.Contains(s, `"checksum":`) {
		t.Errorf("got %s", s)
	}
	out, err := Decode(file)
	if err != nil || !equality.Semantic.DeepEqual(in, out) {
		t.Errorf("got %v, %v", out, err)
	}
	if _, err := Decode([]byte(strings.Replace(string(file), "uid-1", "uid-2", 1))); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a changed file: %v", err)
	}
	if _, err := Decode([]byte("{")); err == nil {
		t.Error("half a file was read")
	}
}

func FuzzDecode(f *testing.F) {
	file, _ := Encode(map[types.UID]Resources{"u": Of(pod("1"))})
	f.Add(file)
	f.Add([]byte(`{"data":"{}","checksum":0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := Decode(data)
		if err != nil {
			return
		}
		again, err := Encode(out)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Decode(again); err != nil || !equality.Semantic.DeepEqual(out, back) {
			t.Errorf("%v became %v, %v", out, back, err)
		}
	})
}
