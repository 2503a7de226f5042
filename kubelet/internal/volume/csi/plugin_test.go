package csi

import (
	"errors"
	"io/fs"
	"path"
	"testing"

	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

// TestHalfANote: a kubelet that was killed while it noted a volume leaves a file that no later one
// knows by its name. It must go, or the directory of the pod never does; notes and what is mounted
// must stay.
func TestHalfANote(t *testing.T) {
	files := memfs.New(memfs.Options{})
	p := New(&volume.Host{FS: files, PodsDir: "/var/lib/kubelet/pods"}, NewHandler(Options{}))
	const half = ".vol_data.json1935545136"
	dir := p.host.VolumeDir("uid", PluginName, "pv")
	write := func(name, text string) {
		t.Helper()
		if err := errors.Join(files.MkdirAll(path.Dir(name), 0o750), files.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	there := func(name string) bool {
		_, err := files.Lstat(name)
		return !errors.Is(err, fs.ErrNotExist)
	}
	write(path.Join(dir, half), `{"driv`)
	write(path.Join(dir, "mount", half), "a pod's own file")
	if _, err := p.Reconstruct("uid", "pv", false); err == nil {
		t.Fatal("a volume that was not noted is known")
	}
	if there(path.Join(dir, half)) || !there(path.Join(dir, "mount", half)) {
		t.Errorf("the half note is there: %v; the pod's file: %v", there(path.Join(dir, half)), there(path.Join(dir, "mount", half)))
	}
	// One that was noted at the second try.
	write(path.Join(dir, half), `{"driv`)
	write(path.Join(dir, dataFile), `{"driverName":"disks","volumeHandle":"1"}`)
	if name, err := p.Reconstruct("uid", "pv", false); err != nil || name != "kubernetes.io/csi/disks^1" {
		t.Fatalf("%q %v", name, err)
	}
	if err := files.RemoveAll(path.Join(dir, "mount")); err != nil {
		t.Fatal(err)
	}
	p.removePublished(dir)
	if there(dir) {
		t.Error("the volume's directory is there after all")
	}
	// And the node's own of a volume that is staged.
	device := p.deviceDir("disks", "1")
	write(path.Join(device, half), "")
	write(path.Join(device, dataFile), "{}")
	if err := files.MkdirAll(path.Join(device, globalMount), 0o750); err != nil {
		t.Fatal(err)
	}
	p.removeDevice(device)
	if there(device) {
		t.Error("the device's directory is there after all")
	}
}
