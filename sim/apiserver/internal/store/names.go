package store

import (
	"encoding/hex"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
)

// nextUID returns a new UID: a version-4 UUID that the seed and the number of
// UIDs made so far decide.
func (s *State) nextUID() types.UID {
	if s.draws != nil {
		return types.UID(s.draws.Draw(func() string { return string(s.drawUID()) }))
	}
	return s.drawUID()
}

func (s *State) drawUID() types.UID {
	s.uids++
	if s.dry {
		return uidOf(loop.Hash(s.seed, []string{"dry run"}, s.dryRuns), s.uids)
	}
	return uidOf(s.seed, s.uids)
}

// NewUID returns a new UID for what is not stored.
func (s *State) NewUID() types.UID { return s.nextUID() }

// uidOf is the UID with that number.
func uidOf(seed, number uint64) types.UID {
	var b [16]byte
	for i := range 2 {
		h := loop.Hash(seed, []string{"uid"}, number, uint64(i))
		for j := range 8 {
			b[i*8+j] = byte(h >> (8 * j))
		}
	}
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	var out [36]byte
	hex.Encode(out[0:8], b[0:4])
	out[8] = '-'
	hex.Encode(out[9:13], b[4:6])
	out[13] = '-'
	hex.Encode(out[14:18], b[6:8])
	out[18] = '-'
	hex.Encode(out[19:23], b[8:10])
	out[23] = '-'
	hex.Encode(out[24:36], b[10:16])
	return types.UID(out[:])
}

// nameAlphabet is what generated names end in: apimachinery's safe alphabet.
const nameAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// GenerateName appends five characters to a prefix, as the API server does.
func (s *State) GenerateName(prefix string) string {
	if s.draws != nil {
		return s.draws.Draw(func() string { return s.drawName(prefix) })
	}
	return s.drawName(prefix)
}

// refusedName is a generated name for what will not be stored under it: errors may say it.
// It is no draw of those that are stored.
func (s *State) refusedName(prefix string) string {
	s.refused++
	return endName(prefix, loop.Hash(s.seed, []string{"refused name", prefix}, s.refused))
}

func (s *State) drawName(prefix string) string {
	s.names++
	prefix = prefix[:min(len(prefix), maxPrefix)]
	return endName(prefix, loop.Hash(s.seed, []string{"name", prefix}, s.names))
}

// maxPrefix is how much of a prefix a generated name has.
const maxPrefix = 58

// endName appends five characters that h decides.
func endName(prefix string, h uint64) string {
	b := []byte(prefix[:min(len(prefix), maxPrefix)])
	for range 5 {
		b = append(b, nameAlphabet[h%uint64(len(nameAlphabet))])
		h /= uint64(len(nameAlphabet))
	}
	return string(b)
}
