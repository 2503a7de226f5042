package applets

import (
	"strings"
	"testing"
)

// FuzzFormats runs the parsers of small languages on arbitrary text.
func FuzzFormats(f *testing.F) {
	for _, s := range []string{"[a-z]*?\\", "1,3-5", "*[!a]b", "2.3nr"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) {
		if len(s) > 64 {
			return
		}
		if strings.Count(s, "*") < 4 {
			wildcard(s, "some/path", true)
		}
		parseKey(s, "")
	})
}
