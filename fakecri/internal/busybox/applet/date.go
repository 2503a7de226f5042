package applet

import (
	"fmt"
	"strings"
	"time"
)

// ParseDate reads a date as date -d and touch -d do: seconds after @, the
// layouts that busybox knows, times of today, and last a stamp. All are UTC. Parts that a layout
// lacks are today's or zero. Other zones than UTC don't exist: TZ is not looked at.
func ParseDate(s string, now time.Time) (time.Time, bool) {
	now = now.UTC()
	if rest, ok := strings.CutPrefix(s, "@"); ok {
		var n int64
		if _, err := fmt.Sscan(rest, &n); err != nil || rest != fmt.Sprint(n) {
			return now, false
		}
		return time.Unix(n, 0).UTC(), true
	}
	for _, layout := range []string{
		"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", "2006-01-02T15:04:05", "2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05 -0700", "2006.01.02-15:04:05", "2006.01.02-15:04",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), true
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC), true
		}
	}
	for _, layout := range []string{"01.02-15:04:05", "01.02-15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return time.Date(now.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC), true
		}
	}
	if t, ok := overflowing(s); ok {
		return t, true
	}
	return ParseStamp(s, now)
}

// overflowing reads a date whose day the month has not, such as 2020-02-30: it
// is one of the next month. mktime(3) normalizes it so.
func overflowing(s string) (time.Time, bool) {
	date, clock, _ := strings.Cut(s, " ")
	var n [6]int
	parts := append(strings.Split(date, "-"), strings.Split(clock, ":")...)
	if strings.Count(date, "-") != 2 || len(parts) > 6 {
		return time.Time{}, false
	}
	for i, p := range parts {
		if p == "" && clock == "" {
			continue
		}
		v, ok := ParseUint(p)
		if !ok || i == 1 && (v < 1 || v > 12) || i == 2 && (v < 1 || v > 31) || i > 2 && v > 60 {
			return time.Time{}, false
		}
		n[i] = v
	}
	return time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, time.UTC), true
}

// ParseStamp reads [[[CC]YY]MM]DDhhmm[.ss], also with the year at the end as
// date takes it. Two digits of a year are 1969 to 2068, as in POSIX.
func ParseStamp(s string, now time.Time) (time.Time, bool) {
	digits, secs, hasSecs := strings.Cut(s, ".")
	if strings.Trim(digits+secs, "0123456789") != "" || hasSecs && len(secs) != 2 {
		return now, false
	}
	n := func(from int) int { return int(digits[from]-'0')*10 + int(digits[from+1]-'0') }
	year, at := now.Year(), 0
	switch len(digits) {
	case 12:
		year, at = n(0)*100+n(2), 4
	case 10:
		year, at = 2000+n(0), 2
		if n(0) >= 69 {
			year -= 100
		}
	case 8:
	default:
		return now, false
	}
	sec := 0
	if hasSecs {
		sec = int(secs[0]-'0')*10 + int(secs[1]-'0')
	}
	month, day, hour, minute := n(at), n(at+2), n(at+4), n(at+6)
	if month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || sec > 60 {
		return now, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, sec, 0, time.UTC), true
}
