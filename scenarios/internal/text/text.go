// Package text writes numbers and times for readers, the same way wherever
// results are shown.
package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// ShortTime is a duration without the zeros that Go's form ends in: 2m, 1h30m. It parses as a
// duration again, so what is printed can be put into a file.
func ShortTime(d time.Duration) string {
	s := d.String()
	if x, ok := strings.CutSuffix(s, "m0s"); ok {
		s = x + "m"
	}
	if x, ok := strings.CutSuffix(s, "h0m"); ok {
		s = x + "h"
	}
	return s
}

// Plural is "1 node", "2 nodes".
func Plural[N int | uint64](n N, what string) string { return Count(n, what, what+"s") }

// Count is Plural for words whose plural is another: "2 boxes".
func Count[N int | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// RoundWall shortens a wall time to three digits or so. Wall times vary from run to run, and more
// digits would pretend otherwise.
func RoundWall(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	case d > 10*time.Millisecond:
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// Stamp is a virtual time in seconds with milliseconds, 11 wide, as the columns
// of a timeline have it. Eleven columns hold eleven days of seconds; a longer time pushes the
// columns after it.
func Stamp(ns int64) string {
	return fmt.Sprintf("%6d.%03ds", ns/1e9, ns%1e9/1e6)
}

// JSON is json.Marshal that leaves <, > and & as they are. Texts of events and commands hold
// these, and nobody embeds the result in HTML. The encoder's newline at the end is cut off.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
