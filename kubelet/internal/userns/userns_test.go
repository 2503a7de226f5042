package userns

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

func TestRanges(t *testing.T) {
	l := loop.New(loop.Options{Name: "n"})
	defer l.Close()
	files := memfs.New(memfs.Options{Loop: l})
	for _, uid := range []string{"a", "b", "c"} {
		_ = files.MkdirAll("/pods/"+uid, 0o750)
	}
	o := Options{FS: files, PodsDir: "/pods"}
	first := func(m *Manager, uid types.UID) uint32 {
		t.Helper()
		ns, err := m.GetOrCreateUserNamespaceMappings(uid)
		if err != nil {
			t.Fatal(err)
		}
		if ns.Uids[0].Length != 65536 || ns.Uids[0].ContainerId != 0 {
			t.Errorf("%v", ns)
		}
		return ns.Uids[0].HostId
	}
	m := New(o)
	if a, b, again := first(m, "a"), first(m, "b"), first(m, "a"); a != 65536 || b != 131072 || again != a {
		t.Error(a, b, again)
	}
	if data, err := files.ReadFile("/pods/b/userns"); err != nil ||
		string(data) != `{"uidMappings":[{"hostId":131072,"containerId":0,"length":65536}],"gidMappings":[{"hostId":131072,"containerId":0,"length":65536}]}` {
		t.Error(string(data), err)
	}
	m.Release("a")
	_ = files.RemoveAll("/pods/a")
	m = New(o) // a new kubelet
	if b, c := first(m, "b"), first(m, "c"); b != 131072 || c != 65536 {
		t.Error(b, c)
	}
	if _, err := m.GetOrCreateUserNamespaceMappings("gone"); err == nil {
		t.Error("no error for a pod without a directory")
	}
	full := New(Options{FS: files, PodsDir: "/pods", IDsPerPod: maxIDs / 2})
	full.loaded = true
	first2, err := full.GetOrCreateUserNamespaceMappings("b")
	if err != nil || first2.Uids[0].HostId != maxIDs/2 {
		t.Error(first2, err)
	}
	if _, err := full.GetOrCreateUserNamespaceMappings("c"); err == nil {
		t.Error("no error when all is taken")
	}
}
