package applets

import (
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/internal/posix"
)

// Date is date, in UTC whatever TZ says: containers of a simulation have no
// other zone, and so traces do not depend on the machine's. The time is the
// loop's. Setting it is refused, as for a container without CAP_SYS_TIME, after
// the argument has been read: a bad date is reported first.
//
// -D takes the conversions of strptime that have an equivalent in Go's layouts;
// others are an invalid date.
func Date() applet.Applet {
	return applet.New(runDate, "date", "[-uR] [-I SPEC] [-r FILE] [-D FMT] [-d TIME] [+FMT]")
}

// parseWith reads a date by a strptime format. Fields that the format lacks are
// those of now, as mktime(3) gets them from BusyBox.
func parseWith(format, s string, now time.Time) (time.Time, bool) {
	// Go's layouts are examples of a certain date; each conversion has one.
	layout := strings.NewReplacer("%Y", "2006", "%m", "01", "%d", "02", "%H", "15", "%M", "04", "%S", "05", "%y", "06", "%b", "Jan", "%B", "January",
		"%a", "Mon", "%A", "Monday", "%T", "15:04:05", "%R", "15:04", "%F", "2006-01-02", "%D", "01/02/06", "%e", "_2", "%z", "-0700", "%Z", "MST", "%%", "%").Replace(format)
	// %s has no layout; seconds since the epoch are what @N is for.
	if format == "%s" {
		return applet.ParseDate("@"+s, now)
	}
	t, err := time.Parse(layout, s)
	if err != nil {
		return now, false
	}
	now = now.UTC()
	// time.Parse leaves year 0, January and day 1 where the format has none.
	if !strings.Contains(layout, "06") {
		t = t.AddDate(now.Year(), 0, 0)
	}
	if !strings.Contains(layout, "01") && !strings.Contains(layout, "Jan") {
		t = time.Date(t.Year(), now.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	}
	if !strings.Contains(layout, "02") && !strings.Contains(layout, "_2") {
		t = t.AddDate(0, 0, now.Day()-1)
	}
	return t.UTC(), true
}

func runDate(c *applet.Call) int {
	o := c.Getopt("Rs:ud:r:I::D:", "rfc-822=R", "rfc-2822=R", "set=s:", "utc=u", "universal=u", "date=d:", "reference=r:", "iso-8601=I::")
	at := c.P.Now()
	format := "%a %b %e %H:%M:%S %Z %Y"
	switch {
	case o.Has('d'):
		t, ok := applet.ParseDate(o.Str('d'), at)
		if o.Has('D') {
			t, ok = parseWith(o.Str('D'), o.Str('d'), at)
		}
		if !ok {
			c.Die("invalid date '%s'", o.Str('d'))
		}
		at = t
	case o.Has('r'):
		fi, err := c.View().Stat(o.Str('r'))
		if err != nil {
			c.Die("%s: %s", o.Str('r'), applet.Strerror(err))
		}
		at = fi.ModTime()
	}
	for _, a := range o.Args {
		if f, ok := strings.CutPrefix(a, "+"); ok {
			format = f
			continue
		}
		if _, ok := applet.ParseStamp(a, at); !ok {
			c.Die("invalid date '%s'", a)
		}
		// Without CAP_SYS_TIME, which containers do not have, this is the end.
		c.Die("can't set date: Operation not permitted")
	}
	if o.Has('s') {
		c.Die("can't set date: Operation not permitted")
	}
	if o.Has('R') {
		format = "%a, %d %b %Y %H:%M:%S %z"
	}
	// The seconds' colon in the zone and the lack of one elsewhere are
	// BusyBox's.
	if o.Has('I') {
		format = map[string]string{
			"": "%Y-%m-%d", "date": "%Y-%m-%d", "hours": "%Y-%m-%dT%H+00:00", "minutes": "%Y-%m-%dT%H:%M+00:00", "seconds": "%Y-%m-%dT%H:%M:%S+00:00",
		}[o.Str('I')]
		if format == "" {
			c.Usage()
		}
	}
	c.Print(posix.Strftime(format, at.UTC()), "\n")
	return 0
}
