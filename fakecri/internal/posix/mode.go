package posix

import (
	"strconv"
	"strings"
)

// ParseMode applies a mode as chmod and umask take it, octal or symbolic, to
// the permission bits mode of a file or of a directory. umask is left out where
// a clause says for nobody whom it is for. false means that it is no mode; an
// octal one has at most four digits' worth of bits. The result has the bits 07777 at most.
func ParseMode(s string, mode uint32, dir bool, umask uint32) (uint32, bool) {
	if s != "" && s[0] >= '0' && s[0] <= '9' {
		n, err := strconv.ParseUint(s, 8, 32)
		if err != nil || n > 0o7777 {
			return 0, false
		}
		return uint32(n), true
	}
	// Clauses build on each other, from the left. For busybox one may be empty.
	for clause := range strings.SplitSeq(s, ",") {
		if clause == "" {
			continue
		}
		var ok bool
		if mode, ok = applyClause(clause, mode, dir, umask); !ok {
			return 0, false
		}
	}
	return mode, true
}

// applyClause applies one clause such as u+x, go=rX or a-w+r: for whom, then
// any number of operators with permissions, each on what the one before has
// left. It is called with a clause without commas.
func applyClause(s string, mode uint32, dir bool, umask uint32) (uint32, bool) {
	i := 0
	who := uint32(0)
	for ; i < len(s); i++ {
		// For u that includes setuid, for g setgid.
		bits, ok := map[byte]uint32{'u': 0o4700, 'g': 0o2070, 'o': 0o0007, 'a': 0o7777}[s[i]]
		if !ok {
			break
		}
		who |= bits
	}
	// A clause for nobody in particular spares the bits of the umask. who says whose bits =
	// replaces, mask which ones may be set.
	mask := who
	if who == 0 {
		who, mask = 0o7777, 0o7777&^umask
	}
	if i >= len(s) {
		return 0, false
	}
	for i < len(s) {
		op := s[i]
		if op != '+' && op != '-' && op != '=' {
			return 0, false
		}
		i++
		perm := uint32(0)
		if i < len(s) && strings.IndexByte("ugo", s[i]) >= 0 {
			// u=g copies what the group has, before this clause changes it.
			three := mode >> map[byte]uint{'u': 6, 'g': 3, 'o': 0}[s[i]] & 7
			perm = three<<6 | three<<3 | three
			i++
			// X is x for a directory, or if somebody has x already.
		} else {
			for ; i < len(s) && strings.IndexByte("rwxXst", s[i]) >= 0; i++ {
				switch s[i] {
				case 'r':
					perm |= 0o444
				case 'w':
					perm |= 0o222
				case 'x':
					perm |= 0o111
				case 'X':
					if dir || mode&0o111 != 0 {
						perm |= 0o111
					}
				case 's':
					perm |= 0o6000
				case 't':
					perm |= 0o1000
				}
			}
		}
		switch op {
		case '+':
			mode |= perm & mask
		case '-':
			mode &^= perm & mask
		case '=':
			// = takes away what the clause does not name.
			mode = mode&^who | perm&mask
		}
	}
	return mode, true
}
