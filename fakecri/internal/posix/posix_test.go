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
