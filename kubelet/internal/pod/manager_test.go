package pod

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/config"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

func named(name, uid string, annotations map[string]string) *v1.Pod {
	p := &v1.Pod{}
	p.Name, p.Namespace, p.UID, p.Annotations = name, "default", types.UID(uid), annotations
	return p
}

var (
	fromFile = map[string]string{kubetypes.ConfigSourceAnnotationKey: "file"}
	mirrored = map[string]string{kubetypes.ConfigMirrorAnnotationKey: "hash"}
)

func TestMirrorTranslation(t *testing.T) {
	for _, order := range [][2]*v1.Pod{
		{named("s", "static", fromFile), named("s", "mirror", mirrored)},
		{named("s", "mirror", mirrored), named("s", "static", fromFile)},
	} {
		m := NewManager()
		m.AddPod(order[0])
		m.AddPod(order[1])
		if got := m.TranslatePodUID("mirror"); got != "static" {
			t.Errorf("translated to %s", got)
		}
		if got, ok := m.MirrorUID("static"); !ok || got != "mirror" {
			t.Errorf("mirror UID %s, %t", got, ok)
		}
		if m.TranslatePodUID("other") != "other" {
			t.Error("other UIDs stay")
		}
		m.RemovePod(named("s", "static", fromFile))
		if _, _, orphaned := m.GetPodsAndMirrorPods(); len(orphaned) != 1 {
			t.Error("the mirror has lost its static pod")
		}
		if got, ok := m.MirrorUID("static"); !ok || got != "mirror" {
			t.Error("the mirror of a removed static pod is known until it goes")
		}
		m.RemovePod(named("s", "mirror", mirrored))
		if _, ok := m.MirrorUID("static"); ok || m.TranslatePodUID("mirror") != "mirror" {
			t.Error("the translation outlived the mirror")
		}
	}
}

func TestSameNameOtherUID(t *testing.T) {
	m := NewManager()
	old, next, mirror := named("a", "1", fromFile), named("a", "2", fromFile), named("a", "3", mirrored)
	m.AddPod(old)
	gen := m.Version().Count()
	m.AddPod(next)
	if m.Version().Count() == gen || m.Len() != 2 {
		t.Error("both are known by UID")
	}
	if p, _ := m.GetPodByMirrorPod(mirror); p != next {
		t.Error("the name belongs to the newer one")
	}
	m.RemovePod(old)
	if _, ok := m.GetPodByMirrorPod(mirror); ok {
		t.Error("removing one forgets the name")
	}
	if pods := m.GetPods(); len(pods) != 1 || pods[0] != next {
		t.Errorf("left %v", pods)
	}
}

// The list stays sorted through changes of any kind, and whoever has one sees no
// later change in it.
func TestGetPodsAfterChanges(t *testing.T) {
	m, fresh := NewManager(), map[types.UID]*v1.Pod{}
	r := rand.New(rand.NewPCG(1, 2))
	var lists [][]*v1.Pod
	var were [][]*v1.Pod
	for i := range 2000 {
		uid := types.UID(strconv.Itoa(r.IntN(12)))
		if old := fresh[uid]; old != nil && r.IntN(3) == 0 {
			m.RemovePod(old)
			delete(fresh, uid)
		} else {
			p := named(strconv.Itoa(r.IntN(4)), string(uid), nil)
			if old != nil && r.IntN(4) > 0 {
				p.Name = old.Name // as most updates
			}
			m.UpdatePod(p)
			fresh[uid] = p
		}
		want := slices.Collect(maps.Values(fresh))
		config.SortPods(want)
		var got []*v1.Pod
		m.Each(func(p *v1.Pod) { got = append(got, p) })
		if !slices.Equal(got, want) {
			t.Fatalf("change %d: %d pods, not %d", i, len(got), len(want))
		}
		if r.IntN(5) == 0 {
			lists, were = append(lists, m.GetPods()), append(were, want)
		}
	}
	for i := range lists {
		if !slices.Equal(lists[i], were[i]) {
			t.Errorf("list %d was written to", i)
		}
	}
}
