package timezone

import (
	"testing"
	"time"
)

func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name   string
		at     time.Time
		offset time.Duration // -1: no such zone
	}{
		{"UTC", time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC), 0},
		{"Etc/UTC", time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC), 0},
		{"Europe/Berlin", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Hour},
		{"Europe/Berlin", time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC), 2 * time.Hour}, // summer time begins
		{"Asia/Kolkata", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 5*time.Hour + 30*time.Minute},
		{"America/New_York", time.Date(2040, 7, 1, 0, 0, 0, 0, time.UTC), -4 * time.Hour}, // by the rule at the data's end
		{"Europe", time.Time{}, -1},
		{"Europe/", time.Time{}, -1},
		{"Mars/Olympus", time.Time{}, -1},
		{"", time.Time{}, -1},
	} {
		loc, err := Load(c.name)
		if c.offset == -1 {
			if err == nil || err.Error() != "unknown time zone "+c.name {
				t.Errorf("%q: %v, %v", c.name, loc, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, s := c.at.In(loc).Zone(); time.Duration(s)*time.Second != c.offset {
			t.Errorf("%s at %v: offset %ds", c.name, c.at, s)
		}
	}
}
