package posix

import (
	"fmt"
	"testing"
)

func TestFind(t *testing.T) {
	for _, c := range []struct {
		pattern string
		flags   Flags
		text    string
		want    string
	}{
		{"a*", 0, "aab", "[0 2]"},
		{"*a", 0, "x*a", "[1 3]"},
		{"^*a", 0, "*a", "[0 2]"},
		{"a|ab", Extended, "ab", "[0 2]"},
		{`a\|b`, 0, "xb", "[1 2]"},
		{`a+`, 0, "aa+", "[1 3]"},
		{`a\+`, 0, "xaa", "[1 3]"},
		{`\(a\)\(b\)*`, 0, "abb", "[0 3 0 1 2 3]"},
		{`a^b$c`, 0, "a^b$c", "[0 5]"},
		{`x\(^a\)`, 0, "xa", "[]"},
		{`[]a]*`, 0, "a]b", "[0 2]"},
		{`[^]a]`, 0, "]ab", "[2 3]"},
		{`[a\]`, 0, `\`, "[0 1]"},
		{`[\t]`, Extended | Escapes, "\t", "[0 1]"},
		{`[[:digit:]]\{2\}`, 0, "a123", "[1 3]"},
		{`a{2,}`, Extended, "aaa", "[0 3]"},
		{`a{,2}`, Extended, "aaa", "[0 2]"},
		{`a{x`, Extended, "a{x", "[0 3]"},
		{`a{2}{2}`, Extended, "aaaa", "[0 4]"},
		{`(ab)**`, Extended, "abab", "[0 4 2 4]"},
		{`HeL`, Fold, "hEl", "[0 3]"},
		{`.`, 0, "\n", "[0 1]"},
		{`\bfoo\>`, 0, "a foo", "[2 5]"},
		{`\w\w*`, 0, "--a_1", "[2 5]"},
		{`\.`, 0, "a.", "[1 2]"},
		{`\/`, Extended | Escapes, "/", "[0 1]"},
		{`\(a*\)b\1`, 0, "aabaab", "[0 5 0 2]"},
		{`^\(.*\)\n\1$`, 0, "x y\nx y", "[0 7 0 3]"},
		{`(a|b)\1`, Extended, "abb", "[1 3 1 2]"},
		{`\(.\)\1\{2\}`, 0, "abbb", "[1 4 1 2]"},
		{`a)`, Extended, "a)", "[0 2]"},
		{`()`, Extended, "", "[0 0 0 0]"},
		{`é*`, 0, "éé", "[0 4]"},
	} {
		re, err := Compile(c.pattern, c.flags)
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		if got := fmt.Sprint(re.Find(c.text)); got != c.want {
			t.Errorf("%q in %q: %s, want %s", c.pattern, c.text, got, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		pattern string
		flags   Flags
		want    error
	}{
		{`\(a`, 0, ErrParen},
		{`a\)`, 0, ErrCloseOnly},
		{`(a`, Extended, ErrParen},
		{`[a`, 0, ErrBracket},
		{`[[:foo:]]`, 0, ErrClass},
		{`a\`, 0, ErrEscape},
		{`a\{1`, 0, nil},
		{`[\`, Extended | Escapes, ErrBracket},
		{`[\]`, Extended | Escapes, ErrBracket},
		{`\1`, 0, ErrBackRef},
		{`a\{2,1\}`, 0, ErrBrace},
	} {
		_, err := Compile(c.pattern, c.flags)
		if err == nil || c.want != nil && err != c.want {
			t.Errorf("%q: %v, want %v", c.pattern, err, c.want)
		}
	}
}

func TestFindAll(t *testing.T) {
	for _, c := range []struct{ pattern, text, want string }{
		{"x*", "abc", "[[0 0] [1 1] [2 2] [3 3]]"},
		{"a*", "baaac", "[[0 0] [1 4] [5 5]]"},
		{`\(.\)\1`, "aabbc", "[[0 2 0 1] [2 4 2 3]]"},
	} {
		re, err := Compile(c.pattern, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(re.FindAll(c.text)); got != c.want {
			t.Errorf("%q in %q: %s, want %s", c.pattern, c.text, got, c.want)
		}
	}
}

// TestParseMode: what busybox chmod makes of the mode of a file, under umask 027.
func TestParseMode(t *testing.T) {
	for _, c := range []struct {
		s         string
		mode, got uint32
		ok        bool
	}{
		{"u+x", 0o640, 0o740, true},
		{"u+x", 0o2755, 0o2755, true},
		{"ug+x", 0o640, 0o750, true},
		{"go=rX", 0o640, 0o644, true},
		{"go=rX", 0o2755, 0o755, true},
		{"a-w+r", 0o640, 0o444, true},
		{"a-w+r", 0o2755, 0o2555, true},
		{"u=g", 0o640, 0o440, true},
		{"u=g", 0o2755, 0o2555, true},
		{"+w", 0o640, 0o640, true},
		{"+x", 0o2640, 0o2750, true},
		{"=r", 0o640, 0o440, true},
		{"=r", 0o2755, 0o440, true},
		{"o+t", 0o640, 0o640, true},
		{"g+s", 0o640, 0o2640, true},
		{"u+s", 0o640, 0o4640, true},
		{"ug+s", 0o640, 0o6640, true},
		{"u=rwx,go=", 0o2755, 0o700, true},
		{"g-s,u+X,-w", 0o640, 0o440, true},
		{"g-s,u+X,-w", 0o2755, 0o555, true},
		{"ug=o", 0o640, 0o0, true},
		{"ug=o", 0o2755, 0o555, true},
		{"u=rws", 0o640, 0o4640, true},
		{"u=rws", 0o2755, 0o6655, true},
		{"7", 0o640, 0o7, true},
		{"07777", 0o640, 0o7777, true},
		{"u+", 0o640, 0o640, true},
		{"77777", 0o640, 0, false},
		{"u", 0o640, 0, false},
		{"u+q", 0o640, 0, false},
		{"8", 0o640, 0, false},
		{"u=gr", 0o640, 0, false},
		{"", 0o640, 0o640, true},
		{",u+x,,g+w", 0o640, 0o760, true},
	} {
		if got, ok := ParseMode(c.s, c.mode, false, 0o027); got != c.got || ok != c.ok {
			t.Errorf("%s of %o: %o, %v; want %o, %v", c.s, c.mode, got, ok, c.got, c.ok)
		}
	}
	if got, _ := ParseMode("a+X", 0o600, true, 0); got != 0o711 {
		t.Errorf("X of a directory: %o", got)
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{`a\(b*\)\1`, `[[:alpha:]]*x\{1,3\}`, `(a|b)+c?$`, `[]^-]`, `\<\w\>`} {
		f.Add(s, "aabb", uint8(0))
		f.Add(s, "abc", uint8(Extended))
	}
	f.Fuzz(func(t *testing.T, pattern, text string, flags uint8) {
		if len(pattern) > 40 || len(text) > 20 {
			return
		}
		re, err := Compile(pattern, Flags(flags&15))
		if err != nil {
			return
		}
		for _, loc := range re.FindAll(text) {
			if loc[0] < 0 || loc[1] < loc[0] || loc[1] > len(text) {
				t.Fatalf("%q in %q: %v", pattern, text, loc)
			}
		}
	})
}
