package memfs_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// TestCompressFile unpacks what was compressed, of files with and without zeros
// that are not kept.
func TestCompressFile(t *testing.T) {
	for name, write := range map[string]func(f *memfs.FS){
		"text":  func(f *memfs.FS) { must(t, f.WriteFile("/log", []byte("one\ntwo\n"), 0o640)) },
		"empty": func(f *memfs.FS) { must(t, f.WriteFile("/log", nil, 0o640)) },
		"nothing again": func(f *memfs.FS) {
			must(t, f.WriteFile("/log", nil, 0o640))
			must(t, f.Truncate("/log", 5<<20))
			must(t, f.Truncate("/log", 0))
		},
		"zeros": func(f *memfs.FS) {
			must(t, f.WriteFile("/log", nil, 0o640))
			must(t, f.Truncate("/log", 5<<20+17))
		},
		"text between zeros": func(f *memfs.FS) {
			must(t, f.WriteFile("/log", []byte("first\n"), 0o640))
			must(t, f.Truncate("/log", 3<<20))
			must(t, f.Append("/log", []byte("last\n"), 0o640))
			must(t, f.Truncate("/log", 3<<20+10000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, f := newFS(t)
			write(f)
			want, err := f.ReadFile("/log")
			must(t, err)
			must(t, f.CompressFile(context.Background(), "/log", "/log.gz"))
			info, err := f.Stat("/log.gz")
			must(t, err)
			if info.Mode().Perm() != 0o640 || info.Size() > 20000 {
				t.Errorf("mode %v, %d bytes", info.Mode(), info.Size())
			}
			packed, err := f.ReadFile("/log.gz")
			must(t, err)
			r, err := gzip.NewReader(bytes.NewReader(packed))
			must(t, err)
			got, err := io.ReadAll(r)
			must(t, err)
			if !bytes.Equal(got, want) {
				t.Errorf("%d bytes came back of %d", len(got), len(want))
			}
		})
	}
	_, f := newFS(t)
	if err := f.CompressFile(context.Background(), "/none", "/none.gz"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	must(t, f.MkdirAll("/dir", 0o755))
	if err := f.CompressFile(context.Background(), "/dir", "/dir.gz"); !errors.Is(err, linux.EISDIR) {
		t.Errorf("a directory: %v", err)
	}
}
