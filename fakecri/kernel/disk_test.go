package kernel

import (
	"errors"
	"os"
	"testing"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// TestDisk: a block device is as large as it is, however much room there is around it.
func TestDisk(t *testing.T) {
	f := memfs.New(memfs.Options{})
	if err := errors.Join(f.WriteFile("/data", nil, 0o600), f.Truncate("/data", 10)); err != nil {
		t.Fatal(err)
	}
	h, err := f.Open("/data", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := disk{h}
	if n, err := d.WriteAt([]byte("abcd"), 8); n != 2 || !errors.Is(err, linux.ENOSPC) {
		t.Errorf("wrote %d across the end: %v", n, err)
	}
	if n, err := d.WriteZerosAt(12, 3); n != 0 || !errors.Is(err, linux.ENOSPC) {
		t.Errorf("wrote %d zeros beyond the end: %v", n, err)
	}
	if err := d.Truncate(20); !errors.Is(err, linux.EINVAL) || d.Size() != 10 {
		t.Errorf("truncated: %v; it has %d bytes", err, d.Size())
	}
	if n, err := d.WriteAt([]byte("xy"), 0); n != 2 || err != nil {
		t.Errorf("wrote %d: %v", n, err)
	}
}
