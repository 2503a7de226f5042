package usage

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseCSV reads points from lines of two columns: a time since the start, in
// seconds ("1.5") or with a unit ("90s"), and an amount, read by amount (nil: a
// whole number). Empty lines and what follows a "#" are skipped, and so is a
// first line of titles, which begins like no number. Errors begin with "line N: ". It is for
// recordings of real programs' usage. Points that are not in order are errors, so that a mistake
// in a file does not become a curve.
func ParseCSV(r io.Reader, amount func(string) (int64, error)) ([]Point, error) {
	if amount == nil {
		amount = func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }
	}
	var points []Point
	lines := bufio.NewScanner(r)
	n, header := 0, true
	for lines.Scan() {
		n++
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff")); text == "" {
			continue
		}
		columns := strings.Split(text, ",")
		if len(columns) != 2 {
			return nil, fmt.Errorf("line %d: %d columns; a time and an amount are wanted", n, len(columns))
		}
		at, err := parseTime(strings.TrimSpace(columns[0]))
		if first := header; first {
			header = false
			if err != nil && !strings.ContainsAny(text[:1], "0123456789+-.") {
				continue
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		value, err := amount(strings.TrimSpace(columns[1]))
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: amount %q: %w", n, strings.TrimSpace(columns[1]), err)
		case value < 0:
			return nil, fmt.Errorf("line %d: negative amount %d", n, value)
		case len(points) > 0 && at < points[len(points)-1].At:
			return nil, fmt.Errorf("line %d: its time %s is before that of the point before, %s", n, at, points[len(points)-1].At)
		case len(points) > 1 && at == points[len(points)-2].At:
			return nil, fmt.Errorf("line %d: the third point at the time %s", n, at)
		}
		points = append(points, Point{At: at, Value: value})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	if len(points) == 0 {
		return nil, fmt.Errorf("line %d: no points", max(n, 1))
	}
	return points, nil
}

// parseTime reads a plain number as seconds; out of range is what would overflow nanoseconds.
func parseTime(s string) (time.Duration, error) {
	var d time.Duration
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		// NaN is neither.
		if !(f >= 0 && f < math.MaxInt64/1e10) {
			return 0, fmt.Errorf("the time %q is out of range", s)
		}
		d = time.Duration(math.Round(f * 1e9))
	} else if d, err = time.ParseDuration(s); err != nil {
		return 0, fmt.Errorf("the time %q is neither seconds nor a duration", s)
	}
	if d < 0 {
		return 0, fmt.Errorf("the time %q is negative", s)
	}
	return d, nil
}
