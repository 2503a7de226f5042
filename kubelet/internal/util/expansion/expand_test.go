package expansion

import (
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "1", "EMPTY": "", "REF": "$(A)"}
	lookup := func(n string) (string, bool) { v, ok := env[n]; return v, ok }
	for in, want := range map[string]string{
		"": "", "plain": "plain", "$(A)": "1", "x$(A)y$(A)": "x1y1", "$(EMPTY).": ".", "$(NONE)": "$(NONE)",
		"$$(A)": "$(A)", "$$$$": "$$", "$": "$", "a$": "a$", "$(A": "$(A", "$A": "$A", "$(REF)": "$(A)", "$()": "$()", "$(A))": "1)",
	} {
		if got := Expand(in, lookup); got != want {
			t.Errorf("Expand(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("$(A)$$(B")
	f.Fuzz(func(t *testing.T, s string) {
		got := Expand(s, func(string) (string, bool) { return "", false })
		if !strings.Contains(s, "$$") && got != s {
			t.Errorf("Expand(%q) = %q though nothing is known", s, got)
		}
	})
}
