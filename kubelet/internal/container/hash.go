package container

import (
	"encoding/json"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// HashContainer is the hash of a container's name and image, the fields whose
// change restarts it: FNV-1a 32 over the decimal text of the bytes of a JSON
// object, in hexadecimal (upstream pkg/kubelet/container/helpers.go).
func HashContainer(c *v1.Container) string {
	doc, err := json.Marshal(struct {
		Image string `json:"image"`
		Name  string `json:"name"`
	}{c.Image, c.Name})
	if err != nil { // two strings always encode
		panic(err)
	}
	h := uint32(2166136261)
	add := func(b byte) { h = (h ^ uint32(b)) * 16777619 }
	for _, b := range []byte("([]uint8)[") {
		add(b)
	}
	var digits [4]byte
	for i, b := range doc {
		if i > 0 {
			add(' ')
		}
		for _, d := range strconv.AppendUint(digits[:0], uint64(b), 10) {
			add(d)
		}
	}
	add(']')
	return strconv.FormatUint(uint64(h), 16)
}

// maxHashes bounds a Hasher.
const maxHashes = 256

// Hasher remembers the hashes of the containers it was asked for, since the
// pods of a node are made from few templates.
type Hasher struct{ known map[hashKey]string }

type hashKey struct{ name, image string }

// Hash is HashContainer.
func (h *Hasher) Hash(c *v1.Container) string {
	k := hashKey{c.Name, c.Image}
	s, ok := h.known[k]
	if !ok {
		if h.known == nil || len(h.known) >= maxHashes {
			h.known = map[hashKey]string{}
		}
		s = HashContainer(c)
		h.known[k] = s
	}
	return s
}
