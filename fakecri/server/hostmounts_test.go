//go:build linux

package server

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
)

func TestMountsBelow(t *testing.T) {
	const info = `22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw
30 22 0:26 / /data rw - tmpfs x rw
31 30 0:27 / /data/sub/inner rw - tmpfs x rw
32 30 0:28 / /data/sub rw - tmpfs x rw
33 30 0:29 / /data/sub rw - tmpfs twice rw
34 30 0:30 / /data/with\040a\040space rw - tmpfs x rw
35 22 0:31 / /database rw - tmpfs x rw
broken
`
	for _, c := range []struct {
		dir  string
		want []string
	}{
		{"/data", []string{"/data/sub", "/data/sub/inner", "/data/with a space"}},
		{"/data/sub", []string{"/data/sub/inner"}},
		{"/data/sub/inner", nil},
		{"/", []string{"/data", "/data/sub", "/data/sub/inner", "/data/with a space", "/database"}},
		{"/none", nil},
	} {
		got, err := mountsBelow(strings.NewReader(info), c.dir)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("below %s: %q, %v; want %q", c.dir, got, err, c.want)
		}
	}
	if _, err := newHostFS().MountsBelow("/"); err != nil {
		t.Error(err)
	}
}

// mountedFS is a hostFS that has something mounted at each directory "disk".
type mountedFS struct{ *hostFS }

func (mountedFS) MountsBelow(dir string) ([]string, error) {
	return filepath.Glob(filepath.Join(dir, "disk"))
}

func TestReadOnlyAbovePlacesToWrite(t *testing.T) {
	onMachine(t, fakecri.Options{Host: mountedFS{newHostFS()}}, func(r *rig) {
		r.file("vol/disk/a", "")
		r.file("vol/b", "")
		for _, c := range []struct {
			name                string
			readonly, recursive bool
			want                string
		}{
			{"to write", false, false, "top\nbelow"},
			{"read-only", true, false, "sh: can't create /v/new: Read-only file system\nbelow"},
			{"recursively", true, true, "sh: can't create /v/new: Read-only file system\nsh: can't create /v/disk/new: Read-only file system"},
		} {
			id := r.mounting(&runtimeapi.Mount{ContainerPath: "/v", HostPath: r.dir + "/vol", Readonly: c.readonly, RecursiveReadOnly: c.recursive})
			got := r.sh(id, "(echo top > /v/new && cat /v/new; echo below > /v/disk/new && cat /v/disk/new) 2>&1; true")
			if got != c.want {
				t.Errorf("%s: got %q, want %q", c.name, got, c.want)
			}
		}
	})
}
