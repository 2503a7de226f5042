//go:build linux

package filesystem

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"

	"github.com/drydock-sim/drydock/ground/loop"
)

// CompressFile implements filesystem.Compressor, on a goroutine.
func (f *FS) CompressFile(ctx context.Context, from, to string) error {
	_, err := loop.Await(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, compress(ctx, from, to) })
	return err
}

// compress writes a rotated log with gzip into another file, which has the same
// mode. A file that could not be written whole is removed.
func compress(ctx context.Context, from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			_ = os.Remove(to)
		}
	}()
	w := gzip.NewWriter(out)
	if _, err := io.Copy(w, reader{ctx, in}); err != nil {
		return err
	}
	return w.Close()
}

// reader is one that ends with a context.
type reader struct {
	ctx context.Context
	r   io.Reader
}

// Read ends when the context does: a log may be large.
func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
