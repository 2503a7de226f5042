package program

// GlobMatch reports whether s matches a pattern in which * stands for any text
// (also with slashes) and ? for one byte. An empty pattern matches everything.
func GlobMatch(pattern, s string) bool {
	return pattern == "" || MatchPattern(pattern, s)
}

// MatchPattern reports whether s matches a pattern in which * stands for any text
// (also with slashes) and ? for one byte.
func MatchPattern(p, s string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == s[j]):
			i++
			j++
		case star >= 0:
			i = star + 1
			mark++
			j = mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
