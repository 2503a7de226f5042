package loop

// Hasher builds a hash out of strings and numbers, eight bytes at a time: for
// tables and the like. What must come out the same for ever, as draws do, is
// made by Hash. The zero value is ready.
type Hasher uint64

// Str adds a string, closed by its length.
func (h *Hasher) Str(s string) {
	n := len(s)
	for len(s) >= 8 {
		h.Word(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
		s = s[8:]
	}
	var w uint64
	for i := 0; i < len(s); i++ {
		w |= uint64(s[i]) << (8 * i)
	}
	h.Word(w)
	h.Word(uint64(n))
}

// Word adds a number.
func (h *Hasher) Word(w uint64) { *h = Hasher(mix((uint64(*h) ^ w) + 0x9e3779b97f4a7c15)) }
