package applet

// ClassBytes lists the characters of a class, nil if there is no such class.
func ClassBytes(name string) []byte {
	var is func(b byte) bool
	digit := func(b byte) bool { return b >= '0' && b <= '9' }
	upper := func(b byte) bool { return b >= 'A' && b <= 'Z' }
	lower := func(b byte) bool { return b >= 'a' && b <= 'z' }
	switch name {
	case "alpha":
		is = func(b byte) bool { return upper(b) || lower(b) }
	case "alnum":
		is = func(b byte) bool { return upper(b) || lower(b) || digit(b) }
	case "digit":
		is = digit
	case "upper":
		is = upper
	case "lower":
		is = lower
	case "space":
		is = func(b byte) bool { return b == ' ' || b >= 9 && b <= 13 }
	case "blank":
		is = func(b byte) bool { return b == ' ' || b == '\t' }
	case "punct":
		is = func(b byte) bool { return b > 32 && b < 127 && !upper(b) && !lower(b) && !digit(b) }
	case "cntrl":
		is = func(b byte) bool { return b < 32 || b == 127 }
	case "xdigit":
		is = func(b byte) bool { return digit(b) || b|0x20 >= 'a' && b|0x20 <= 'f' }
	case "print":
		is = func(b byte) bool { return b >= 32 && b < 127 }
	case "graph":
		is = func(b byte) bool { return b > 32 && b < 127 }
	default:
		return nil
	}
	var out []byte
	for i := 0; i < 256; i++ {
		if is(byte(i)) {
			out = append(out, byte(i))
		}
	}
	return out
}
