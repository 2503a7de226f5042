package images

import (
	"cmp"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/drydock-sim/drydock/ground/memfs"
)

// Space is what an image takes on disk.
func (src *Source) Space() memfs.Space {
	return memfs.Space{Bytes: cmp.Or(src.Unpacked, src.Size), Inodes: cmp.Or(src.Inodes, 1)}
}

// HoldImage is called for each that needs an image's files: its record and the
// containers made of it. The files are there until the last has gone.
func (r *Store) HoldImage(src *Source) {
	if src.holders == 0 {
		r.Disk.Add(src.Space())
	}
	src.holders++
}

// ReleaseImage is called for each that needs the files no more; the last gives back
// their space.
func (r *Store) ReleaseImage(src *Source) {
	src.holders--
	if src.holders == 0 {
		s := src.Space()
		r.Disk.Add(memfs.Space{Bytes: -s.Bytes, Inodes: -s.Inodes})
	}
}

// ImageFits reports whether an image can be unpacked; if not the error is
// containerd's, of the download or of the first layer.
func (r *Store) ImageFits(src *Source, name string) error {
	if src.holders > 0 {
		return nil
	}
	free, need := r.Disk.Disk().Free(), src.Space()
	if need.Bytes <= free.Bytes && need.Inodes <= free.Inodes {
		return nil
	}
	if src.Size > free.Bytes {
		return status.Errorf(codes.Unknown, "failed to pull and unpack image %q: failed to copy: write %s/ingest/%s/data: no space left on device",
			name, contentStore, Hash("ingest", src.Digest))
	}
	what := "write"
	if need.Inodes > free.Inodes {
		what = "mkdir"
	}
	layer := Hash("layer", src.Digest)
	mount := "/var/lib/containerd/tmpmounts/containerd-mount" + strconv.FormatUint(r.l.Uint64("mount", name, src.Pulls)%1e10, 10)
	return status.Errorf(codes.Unknown, "failed to pull and unpack image %q: failed to extract layer sha256:%s: mount callback failed on %s: %s %s/usr: no space left on device",
		name, layer, mount, what, mount)
}

// contentStore is where containerd keeps what it downloads.
const contentStore = "/var/lib/containerd/io.containerd.content.v1.content"
