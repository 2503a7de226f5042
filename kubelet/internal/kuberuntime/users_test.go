package kuberuntime

import (
	"slices"
	"testing"
	"unsafe"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// Containers with equal users share one; what a runtime doesn't say is nil.
func TestUser(t *testing.T) {
	var s shared
	said := func(uid, gid int64, groups ...int64) *runtimeapi.ContainerUser {
		return &runtimeapi.ContainerUser{Linux: &runtimeapi.LinuxContainerUser{Uid: uid, Gid: gid, SupplementalGroups: groups}}
	}
	if u := s.user(nil); u != nil {
		t.Errorf("nothing said: %v", u)
	}
	if u := s.user(&runtimeapi.ContainerUser{}); u == nil || u.Linux != nil {
		t.Errorf("no user of Linux: %v", u)
	}
	root := s.user(said(0, 0, 0, 10))
	if l := root.Linux; l.UID != 0 || l.GID != 0 || !slices.Equal(l.SupplementalGroups, []int64{0, 10}) {
		t.Errorf("got %+v", l)
	}
	if s.user(said(0, 0, 0, 10)) != root {
		t.Error("two containers of one user share nothing")
	}
	for i, other := range []*runtimeapi.ContainerUser{said(1, 0, 0, 10), said(0, 1, 0, 10), said(0, 0, 10), said(0, 0), {}} {
		if s.user(other) == root {
			t.Errorf("%d: %v is taken for root", i, other)
		}
	}
	again := said(0, 0, 0, 10)
	s.user(again)
	if n := testing.AllocsPerRun(10, func() { s.user(again) }); n != 0 {
		t.Errorf("%v allocations for a known user", n)
	}
}

// A container's status fits its size class: there are 150,000 pods of them.
func TestStatusSize(t *testing.T) {
	if n := unsafe.Sizeof(kubecontainer.Status{}); n > 256 {
		t.Errorf("a container's status takes %d bytes", n)
	}
}
