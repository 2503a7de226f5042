package pattern

import "testing"

// FuzzMatch holds Match against one that tries everything.
func FuzzMatch(f *testing.F) {
	for _, s := range [][2]string{{"a*b?c", "axxbyc"}, {"[a-c]*[!x]", "bzz"}, {"*[[:digit:]]", "ab3"}, {`\**`, "*a"}, {"[]a]", "]"}, {"[a", "[a"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, p, s string) {
		if len(p) > 12 || len(s) > 12 {
			return
		}
		if got, want := Match(p, s), slowMatch(p, s); got != want {
			t.Errorf("Match(%q, %q) = %v", p, s, got)
		}
	})
}

func slowMatch(p, s string) bool {
	if p == "" {
		return s == ""
	}
	if p[0] == '*' {
		for i := 0; i <= len(s); i++ {
			if slowMatch(p[1:], s[i:]) {
				return true
			}
		}
		return false
	}
	if s == "" {
		return false
	}
	pn, sn := matchOne(p, s)
	return pn > 0 && slowMatch(p[pn:], s[sn:])
}

// FuzzTrim holds the short ways of trimming against trying every place.
func FuzzTrim(f *testing.F) {
	f.Add("*/", "a/b/c", true)
	f.Add("/*", "a/b/c", false)
	f.Add("*", "abc", true)
	f.Add(`\**`, "a*b", false)
	f.Fuzz(func(t *testing.T, p, s string, longest bool) {
		if len(p) > 8 || len(s) > 16 {
			return
		}
		prefix, suffix := s, s
		for i := range len(s) + 1 {
			n := i
			if longest {
				n = len(s) - i
			}
			if prefix == s && Match(p, s[:n]) && n > 0 {
				prefix = s[n:]
				break
			} else if Match(p, s[:n]) {
				break
			}
		}
		for i := range len(s) + 1 {
			n := len(s) - i
			if longest {
				n = i
			}
			if Match(p, s[n:]) {
				suffix = s[:n]
				break
			}
		}
		if got := TrimPrefix(s, p, longest); got != prefix {
			t.Errorf("TrimPrefix(%q, %q, %v) = %q, want %q", s, p, longest, got, prefix)
		}
		if got := TrimSuffix(s, p, longest); got != suffix {
			t.Errorf("TrimSuffix(%q, %q, %v) = %q, want %q", s, p, longest, got, suffix)
		}
	})
}
