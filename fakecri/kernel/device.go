package kernel

import (
	"context"
	"encoding/binary"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/kernel/hostfs"
	"github.com/drydock-sim/drydock/ground/linux"
)

// device is an open character device. It has no state, so a Dup is itself. name is that of the
// driver, which Mknod keeps in the file.
type device struct {
	m    *Machine
	name string
}

// Null returns an open /dev/null.
func (m *Machine) Null() File { return device{m, "null"} }

// DiskDriver and a path are the name of the driver of a block device that holds what is in a
// file of the node's: as much as that has, and no more.
const DiskDriver = "disk:"

// disk is the file behind a block device.
type disk struct{ hostfs.File }

// WriteAt writes as far as the device goes; ENOSPC beyond.
func (d disk) WriteAt(b []byte, off int64) (int, error) {
	fits := max(min(int64(len(b)), d.Size()-off), 0)
	n, err := d.File.WriteAt(b[:fits], off)
	if err == nil && n < len(b) {
		err = linux.ENOSPC
	}
	return n, err //nolint:wrapcheck // A number of the kernel's.
}

// WriteZerosAt writes as far as the device goes; ENOSPC beyond.
func (d disk) WriteZerosAt(off, n int64) (int64, error) {
	done, err := d.File.WriteZerosAt(off, max(min(n, d.Size()-off), 0))
	if err == nil && done < n {
		err = linux.ENOSPC
	}
	return done, err //nolint:wrapcheck // A number of the kernel's.
}

// Truncate is not for devices.
func (d disk) Truncate(int64) error { return linux.EINVAL }

// Mode is that of a block device.
func (d disk) Mode() fs.FileMode { return fs.ModeDevice | d.File.Mode().Perm() }

// openDevice opens a device by the name of its driver; path is the device's.
func (v *View) openDevice(name, path string, flag int) (File, linux.Errno) {
	if file, ok := strings.CutPrefix(name, DiskDriver); ok {
		f, err := v.ns.m.opts.FS.Open(file, flag&(os.O_WRONLY|os.O_RDWR), 0)
		if err != nil {
			return nil, linux.ENXIO // it is not there any more
		}
		return &openFile{h: disk{f}, path: path, refs: 1, flag: flag}, 0
	}
	switch name {
	case "null", "zero", "full", "random", "urandom":
		return device{v.ns.m, name}, 0
	// /dev/tty is whatever terminal the process has among its descriptors.
	case "tty":
		if v.p != nil && v.p.tty {
			for _, f := range v.p.fds {
				if f != nil && IsTTY(f) {
					return f.Dup(), 0
				}
			}
		}
	}
	return nil, linux.ENXIO
}

// Read gives nothing, zeros or draws of the loop. /dev/full reads as zeros as well.
func (d device) Read(_ context.Context, b []byte) (int, error) {
	switch d.name {
	case "null":
		return 0, io.EOF
	case "random", "urandom":
		d.m.random(b)
	default:
		clear(b)
	}
	return len(b), nil
}

// Write takes everything; /dev/full nothing.
func (d device) Write(_ context.Context, b []byte) (int, error) {
	if d.name == "full" {
		return 0, linux.ENOSPC
	}
	return len(b), nil
}

// WriteZeros is of ZeroWriter.
func (d device) WriteZeros(_ context.Context, n int64) error {
	if d.name == "full" && n > 0 {
		return linux.ENOSPC
	}
	return nil
}

// Seek does nothing.
func (d device) Seek(int64, int) (int64, error) { return 0, nil }

// ReadsZeros tells that it is /dev/zero.
func (d device) ReadsZeros() bool { return d.name == "zero" || d.name == "full" }

func (d device) Close() error { return nil }
func (d device) Dup() File    { return d }
func (d device) Path() string { return "/dev/" + d.name }

// random fills b with the next draws. The draws are numbered per machine, so what a process reads
// depends on who read before on the node, and on the seed.
func (m *Machine) random(b []byte) {
	var word [8]byte
	for len(b) > 0 {
		binary.LittleEndian.PutUint64(word[:], m.l.Uint64("urandom", m.opts.Hostname, m.draws))
		m.draws++
		b = b[copy(b, word[:]):]
	}
}

// uuid draws a random UUID (version 4).
func (m *Machine) uuid() string {
	var b [16]byte
	m.random(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	const hex = "0123456789abcdef"
	out := make([]byte, 0, 36)
	for i, c := range b {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			out = append(out, '-')
		}
		out = append(out, hex[c>>4], hex[c&15])
	}
	return string(out)
}

// itoa is strconv.Itoa, under a name short enough for the tables of /proc.
func itoa(n int) string { return strconv.Itoa(n) }
