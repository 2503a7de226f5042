// Package checksum is how the kubelet's checkpoint files are protected (upstream
// pkg/kubelet/checkpointmanager/checksum): the sum is of a printed Go value, in
// which names of types count.
package checksum

import (
	"errors"
	"hash/fnv"
	"io"

	"k8s.io/utils/dump"
)

// ErrCorrupt is the error of a checkpoint whose checksum is not that of its
// data (upstream checkpointmanager/errors).
var ErrCorrupt = errors.New("checkpoint is corrupted")

// Checksum is the sum of a checkpoint.
type Checksum uint64

// New returns the checksum of a value. A checkpoint's own must be 0 in it.
func New(v any) Checksum {
	h := fnv.New32a()
	_, _ = io.WriteString(h, dump.ForHash(v))
	return Checksum(h.Sum32())
}
