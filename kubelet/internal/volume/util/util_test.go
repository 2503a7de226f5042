package util

import (
	"io/fs"
	"path"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

func newHost(t *testing.T) (*volume.Host, *memfs.FS) {
	t.Helper()
	l := loop.New(loop.Options{})
	t.Cleanup(l.Close)
	files := memfs.New(memfs.Options{Loop: l})
	if err := files.MkdirAll("/v", 0o755); err != nil {
		t.Fatal(err)
	}
	return &volume.Host{FS: files, Now: l.Now, Random: func(_ string, n uint64) uint32 { return uint32(n) }}, files
}

// shown is what a reader of the volume sees, by path.
func shown(t *testing.T, files *memfs.FS) map[string]string {
	t.Helper()
	out := map[string]string{}
	var walk func(rel string)
	walk = func(rel string) {
		entries, err := files.ReadDir(path.Join("/v", rel))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			p := path.Join(rel, e.Name())
			if strings.HasPrefix(p, "..") {
				continue
			}
			info, err := files.Stat(path.Join("/v", p))
			if err != nil {
				t.Fatal(err)
			}
			if info.IsDir() {
				walk(p)
				continue
			}
			data, err := files.ReadFile(path.Join("/v", p))
			if err != nil {
				t.Fatal(err)
			}
			out[p] = string(data)
		}
	}
	walk("")
	return out
}

func payload(pairs ...string) map[string]FileProjection {
	out := map[string]FileProjection{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = FileProjection{Data: []byte(pairs[i+1]), Mode: 0o400}
	}
	return out
}

func TestAtomicWriter(t *testing.T) {
	host, files := newHost(t)
	w := NewAtomicWriter(host, "/v", "uid", "v")
	last := ""
	for i, tc := range []struct {
		write   []string
		written bool
	}{
		{[]string{"a", "1", "dir/b", "2", "dir/deep/c", "3"}, true},
		{[]string{"a", "1", "dir/b", "2", "dir/deep/c", "3"}, false},
		{[]string{"a", "changed", "dir/b", "2", "dir/deep/c", "3"}, true},
		{[]string{"a", "changed", "dir/b", "2"}, true},
		{[]string{"new", "4"}, true},
		{nil, true},
		{nil, false},
	} {
		if err := w.Write(payload(tc.write...), nil); err != nil {
			t.Fatal(i, err)
		}
		want := map[string]string{}
		for j := 0; j < len(tc.write); j += 2 {
			want[tc.write[j]] = tc.write[j+1]
		}
		if got := shown(t, files); !reflect.DeepEqual(got, want) {
			t.Errorf("%d: %v", i, got)
		}
		to, err := files.Readlink("/v/..data")
		if err != nil || to != last != tc.written {
			t.Errorf("%d: %q after %q, %v", i, to, last, err)
		}
		last = to
		entries, _ := files.ReadDir("/v")
		for _, e := range entries {
			switch {
			case e.Name() == to:
				if info, _ := e.Info(); info.Mode() != fs.ModeDir|0o755 || !strings.HasPrefix(to, "..2026_01_01_00_00_00.") {
					t.Errorf("%d: %s %v", i, to, info.Mode())
				}
			case e.Type() != fs.ModeSymlink:
				t.Errorf("%d: %s is left over", i, e.Name())
			}
		}
	}
	if err := w.Write(payload("a", "1"), nil); err != nil {
		t.Fatal(err)
	}
	if info, err := files.Stat("/v/a"); err != nil || info.Mode() != 0o400 {
		t.Error(info, err)
	}
	if to, _ := files.Readlink("/v/a"); to != "..data/a" {
		t.Error(to)
	}
}

// The old content stays whole until the new one is.
func TestAtomicWriterFails(t *testing.T) {
	host, files := newHost(t)
	w := NewAtomicWriter(host, "/v", "uid", "v")
	if err := w.Write(payload("a", "1"), nil); err != nil {
		t.Fatal(err)
	}
	err := w.Write(payload("a", "2", "b", "2"), func() error {
		if got := shown(t, files); !reflect.DeepEqual(got, map[string]string{"a": "1"}) {
			t.Errorf("a half-written volume is seen: %v", got)
		}
		return fs.ErrPermission
	})
	if err != fs.ErrPermission || !reflect.DeepEqual(shown(t, files), map[string]string{"a": "1"}) {
		t.Error(err, shown(t, files))
	}
}

func TestValidatePath(t *testing.T) {
	for p, ok := range map[string]bool{
		"a": true, "a/b": true, "..": false, "../a": false, "a/../b": false, "..a": false, "a/..b": true, "/a": false, "": false,
		".a": true, strings.Repeat("x", 256): false, strings.Repeat("x", 255): true, strings.Repeat("x/", 2049): false,
	} {
		if err := validatePath(p); (err == nil) != ok {
			t.Errorf("%.20q: %v", p, err)
		}
	}
}

func FuzzValidatePath(f *testing.F) {
	for _, s := range []string{"a", "a/../b", "..data", "a//b", "./../x", "a/."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if validatePath(p) != nil {
			return
		}
		if clean := path.Join("/v", p); !strings.HasPrefix(clean, "/v") || strings.HasPrefix(path.Clean(p), "..") {
			t.Errorf("%q leads to %q", p, clean)
		}
	})
}

func TestSetVolumeOwnership(t *testing.T) {
	for _, tc := range []struct {
		readOnly  bool
		dir, file fs.FileMode
	}{
		{false, fs.ModeDir | fs.ModeSetgid | 0o777, 0o660},
		{true, fs.ModeDir | fs.ModeSetgid | 0o777, 0o640},
	} {
		host, files := newHost(t)
		_ = files.Chmod("/v", 0o777)
		_ = files.WriteFile("/v/f", nil, 0o600)
		group := int64(2000)
		if err := SetVolumeOwnership(host.FS, "/v", tc.readOnly, &group); err != nil {
			t.Fatal(err)
		}
		dir, _ := files.Stat("/v")
		file, _ := files.Stat("/v/f")
		if dir.Mode() != tc.dir || file.Mode() != tc.file {
			t.Errorf("readOnly %t: %v, %v", tc.readOnly, dir.Mode(), file.Mode())
		}
		if sys := file.Sys().(*memfs.Sys); sys.UID != 0 || sys.GID != 2000 {
			t.Errorf("%+v", sys)
		}
	}
}

func TestFSUser(t *testing.T) {
	user := func(n int64) *v1.SecurityContext { return &v1.SecurityContext{RunAsUser: &n} }
	one := int64(1)
	for i, tc := range []struct {
		pod  *v1.PodSecurityContext
		main *v1.SecurityContext
		init *v1.SecurityContext
		want int64 // 0: none
	}{
		{nil, nil, nil, 0},
		{&v1.PodSecurityContext{RunAsUser: &one}, nil, nil, 1},
		{&v1.PodSecurityContext{RunAsUser: &one}, user(2), nil, 0},
		{&v1.PodSecurityContext{RunAsUser: &one}, user(2), user(2), 2},
		{nil, user(2), nil, 0},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{SecurityContext: tc.pod,
			InitContainers: []v1.Container{{SecurityContext: tc.init}}, Containers: []v1.Container{{SecurityContext: tc.main}}}}
		got := int64(0)
		if u := FSUser(pod); u != nil {
			got = *u
		}
		if got != tc.want {
			t.Errorf("%d: %d", i, got)
		}
	}
}

func TestNestedMountpoints(t *testing.T) {
	host, files := newHost(t)
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{VolumeMounts: []v1.VolumeMount{
		{Name: "v", MountPath: "/etc/cfg"}, {Name: "w", MountPath: "/etc/cfg/a/b/"}, {Name: "x", MountPath: "/etc/cfgother"},
	}}}}}
	if err := MakeNestedMountpoints(host.FS, "v", "/v", pod); err != nil {
		t.Fatal(err)
	}
	if info, err := files.Stat("/v/a/b"); err != nil || !info.IsDir() {
		t.Error(err)
	}
	if entries, _ := files.ReadDir("/v"); len(entries) != 1 {
		t.Error(entries)
	}
}
