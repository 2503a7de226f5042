package memfs

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"

	"github.com/drydock-sim/drydock/ground/linux"
)

// zeroMember is how many zeros one member of a gzip file holds at most.
const zeroMember = 1 << 20

// CompressFile makes a gzipped copy of a file, as the kubelet's log rotation
// wants it. Zeros that are not kept are not gone through either: a gzip file is
// a sequence of members, and one for a megabyte of zeros is made once. The result is small, so
// the simulator holds little for a large rotated log.
func (f *FS) CompressFile(_ context.Context, from, to string) error {
	info, err := f.Stat(from)
	if err != nil {
		return err
	}
	pl, errno := f.walk(from, true)
	switch {
	case errno != 0:
		return pathError("open", from, errno)
	case pl.n.isDir():
		return pathError("read", from, linux.EISDIR)
	}
	var out bytes.Buffer
	if s := pl.n.sparse(); s != nil {
		err = s.compress(&out)
	} else {
		err = gzipped(&out, pl.n.body.content())
	}
	if err != nil {
		return fmt.Errorf("compress %s: %w", from, err)
	}
	return f.WriteShared(to, out.Bytes(), info.Mode().Perm())
}

// gzipped adds one member with data to a gzip file.
func gzipped(out *bytes.Buffer, data []byte) error {
	w := gzip.NewWriter(out)
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.Close()
}

// compress writes the content, with what is not kept as zeros. Runs and the zeros between become
// members one after the other, which gzip readers join.
func (s *sparse) compress(out *bytes.Buffer) error {
	var whole bytes.Buffer // a member of zeroMember zeros
	at := int64(0)
	fill := func(to int64) error {
		for ; at+zeroMember <= to; at += zeroMember {
			if whole.Len() == 0 {
				if err := gzipped(&whole, make([]byte, zeroMember)); err != nil {
					return err
				}
			}
			out.Write(whole.Bytes())
		}
		rest := make([]byte, to-at)
		if at = to; len(rest) == 0 {
			return nil
		}
		return gzipped(out, rest)
	}
	for _, r := range s.runs {
		if r.data == nil {
			continue
		}
		if err := fill(r.off); err != nil {
			return err
		}
		if err := gzipped(out, r.data); err != nil {
			return err
		}
		at = r.off + r.n
	}
	// An empty file is one empty member, as a gzip file needs one.
	if s.size == 0 {
		return gzipped(out, nil)
	}
	return fill(s.size)
}
