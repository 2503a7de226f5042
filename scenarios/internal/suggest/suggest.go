// Package suggest finds the name that somebody probably meant.
package suggest

import (
	"fmt"
	"strings"

	"github.com/agext/levenshtein"
)

// Near returns the candidate that is close to name, or "" if none is. Of
// equally close ones it returns the one that begins most alike, then the first. Distance is
// Levenshtein's without regard to case. Up to a third of the name's length may differ, at least
// one letter: beyond, a suggestion is noise. The candidates' order decides ties, so callers sort
// them or have them in the order of declaration.
func Near(name string, candidates []string) string {
	best, bestD := "", 1+max(1, (len(name)+2)/3)
	for _, c := range candidates {
		if c == name {
			continue
		}
		d := levenshtein.Distance(strings.ToLower(name), strings.ToLower(c), nil)
		if d < bestD || d == bestD && best != "" && common(name, c) > common(name, best) {
			best, bestD = c, d
		}
	}
	return best
}

// common is how many bytes a and b begin with alike.
func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Suffix returns ` (did you mean "x"?)`, or "" if nothing is close. It is appended to messages
// about unknown names as it is.
func Suffix(name string, candidates []string) string {
	if n := Near(name, candidates); n != "" {
		return fmt.Sprintf(" (did you mean %q?)", n)
	}
	return ""
}
