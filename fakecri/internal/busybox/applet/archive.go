package applet

import (
	"bytes"
	"compress/gzip"
	"io"
)

// MaxUnpacked bounds what an archive may unpack to in memory, in bytes. A small archive can
// unpack to anything, and it is this process's memory that it would fill.
const MaxUnpacked = 256 << 20

// invalidMagic is what busybox says of what is no gzip file.
type invalidMagic struct{}

func (invalidMagic) Error() string { return "invalid magic" }

// Gzipped packs or unpacks all of a stream. Packing costs time, about a
// sixteenth of the speed of copying; the level does not matter. All of it is in memory at once;
// BusyBox works in blocks, which nobody can tell apart here. Levels change sizes a little, so
// what a packed file weighs is not quite the real one's.
func (c *Call) Gzipped(r io.Reader, unpack bool) ([]byte, error) {
	if unpack {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, invalidMagic{}
		}
		return io.ReadAll(io.LimitReader(z, MaxUnpacked))
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.Copy(z, r); err != nil {
		return nil, err
	}
	err := z.Close()
	c.Spend(int64(b.Len()) * 16)
	return b.Bytes(), err
}
