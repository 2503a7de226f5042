package logs

import (
	"context"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// compressorFS compresses by itself, which takes time.
type compressorFS struct {
	*memfs.FS
	l     *loop.Loop
	calls int
}

func (f *compressorFS) CompressFile(ctx context.Context, _, to string) error {
	f.calls++
	if err := f.l.Sleep(ctx, time.Second); err != nil {
		return err
	}
	return f.WriteFile(to, []byte("small"), 0o640)
}

func TestFilesThatCompress(t *testing.T) {
	var files *compressorFS
	r := newRig(t, func(o *Options) {
		files = &compressorFS{FS: o.FS.(*memfs.FS), l: o.Group.Loop()}
		o.FS = files
	})
	for _, at := range []time.Duration{11, 21} {
		r.write(200)
		r.run(at * time.Second)
	}
	r.run(25 * time.Second)
	if got, want := r.files(), "0.log:0 0.log.20260101-000000.gz 0.log.20260101-000021:200"; got != want || files.calls != 1 {
		t.Errorf("%s, %d calls", got, files.calls)
	}
}
