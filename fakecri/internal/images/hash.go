package images

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Hash makes an id of 64 hex digits: the same for the same arguments, so that ids
// repeat from run to run.
func Hash(kind, name string, nums ...uint64) string {
	b := make([]byte, 0, 128)
	b = append(b, kind...)
	b = append(b, 0)
	b = append(b, name...)
	b = append(b, 0)
	for _, n := range nums {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	sum := sha256.Sum256(b)
	var id [2 * sha256.Size]byte
	hex.Encode(id[:], sum[:])
	return string(id[:])
}
