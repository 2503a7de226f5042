// Package suggest finds the name that somebody probably meant.
package suggest

import (
	"fmt"
	"strings"

	"github.com/agext/levenshtein"
)

// Near returns the candidate that is close to name, or "" if none is. Of
// equally close ones it returns the first.
func Near(name string, candidates []string) string {
	best, bestD := "", 1+max(1, (len(name)+2)/3)
	for _, c := range candidates {
		if c == name {
			continue
		}
		d := levenshtein.Distance(strings.ToLower(name), strings.ToLower(c), nil)
		if d < bestD {
			best, bestD = c, d
		}
	}
	return best
}

// Suffix returns ` (did you mean "x"?)`, or "" if nothing is close.
func Suffix(name string, candidates []string) string {
	if n := Near(name, candidates); n != "" {
		return fmt.Sprintf(" (did you mean %q?)", n)
	}
	return ""
}
