package hostpath

import (
	"context"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

func TestSetUp(t *testing.T) {
	for _, tc := range []struct {
		typ  v1.HostPathType
		path string
		err  string // "" for none; its end
		made string // "dir", "file" or "": what is there then
	}{
		{v1.HostPathUnset, "/absent", "", ""},
		{v1.HostPathDirectory, "/dir", "", "dir"},
		{v1.HostPathDirectory, "/to-dir", "", "dir"},
		{v1.HostPathDirectory, "/absent", "hostPath type check failed: /absent is not a directory", ""},
		{v1.HostPathDirectory, "/file", "hostPath type check failed: /file is not a directory", "file"},
		{v1.HostPathDirectoryOrCreate, "/new/deep", "", "dir"},
		{v1.HostPathDirectoryOrCreate, "/file", "hostPath type check failed: /file is not a directory", "file"},
		{v1.HostPathFile, "/file", "", "file"},
		{v1.HostPathFile, "/dir", "hostPath type check failed: /dir is not a file", "dir"},
		{v1.HostPathFileOrCreate, "/dir/new", "", "file"},
		{v1.HostPathFileOrCreate, "/absent/new", "no such file or directory", ""},
		{v1.HostPathSocket, "/file", "hostPath type check failed: /file is not a socket file", "file"},
		{v1.HostPathCharDev, "/file", "hostPath type check failed: /file is not a character device", "file"},
		{v1.HostPathBlockDev, "/absent", "hostPath type check failed: /absent is not a block device", ""},
		{v1.HostPathUnset, "/dir/../etc", "invalid HostPath `/dir/../etc`: must not contain '..'", ""},
	} {
		l := loop.New(loop.Options{})
		files := memfs.New(memfs.Options{Loop: l})
		_ = files.Mkdir("/dir", 0o755)
		_ = files.WriteFile("/file", nil, 0o644)
		_ = files.Symlink("/dir", "/to-dir")
		v := &v1.Volume{Name: "h", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: tc.path, Type: &tc.typ}}}
		err := New(&volume.Host{FS: files}).SetUp(context.Background(), &volume.Request{Volume: v})
		if got := text(err); tc.err == "" && got != "" || !strings.HasSuffix(got, tc.err) {
			t.Errorf("%s %s: %q", tc.typ, tc.path, got)
		}
		made := ""
		if info, err := files.Stat(tc.path); err == nil {
			if made = "file"; info.IsDir() {
				made = "dir"
			}
		}
		if made != tc.made {
			t.Errorf("%s %s: there is %q", tc.typ, tc.path, made)
		}
		l.Close()
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
