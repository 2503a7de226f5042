// Package expansion replaces references $(NAME) in texts (upstream
// third_party/forked/golang/expansion).
package expansion

import "strings"

// Expand replaces each $(NAME) in s by what lookup says of NAME. $$ stands for
// $; a name that lookup doesn't know stays as it is written, as does a
// reference without its closing bracket.
func Expand(s string, lookup func(name string) (string, bool)) string {
	if strings.IndexByte(s, '$') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		switch s[i+1] {
		case '$':
			b.WriteByte('$')
			i++
		case '(':
			name, _, closed := strings.Cut(s[i+2:], ")")
			if !closed {
				b.WriteString("$(")
				i++
				continue
			}
			if v, ok := lookup(name); ok {
				b.WriteString(v)
			} else {
				b.WriteString("$(" + name + ")")
			}
			i += len("()") + len(name)
		default:
			b.WriteString(s[i : i+2])
			i++
		}
	}
	return b.String()
}
