package posix

import (
	"fmt"
	"strings"
	"time"
)

// Strftime formats a time as C's strftime does in the C locale, with glibc's
// flags: - takes padding away, _ makes it spaces, 0 zeros; ^, E and O are
// passed over. A conversion that is not known is printed as it stands. Applets such as date and
// the shell's printf share it. The zone is that of t.
func Strftime(format string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 >= len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		pad := byte(0)
		// Flags may pile up; the last of those that pad counts.
		for strings.IndexByte("-_0^EO", format[i]) >= 0 && i+1 < len(format) {
			if strings.IndexByte("-_0", format[i]) >= 0 {
				pad = format[i]
			}
			i++
		}
		s := strftime1(format[i], t)
		switch pad {
		// Only numbers lose their padding.
		case '-':
			if len(s) > 1 && strings.Trim(s, "0123456789 ") == "" {
				s = strings.TrimLeft(s[:len(s)-1], "0 ") + s[len(s)-1:]
			}
		case '_':
			for j := 0; j+1 < len(s) && s[j] == '0'; j++ {
				s = s[:j] + " " + s[j+1:]
			}
		case '0':
			s = strings.ReplaceAll(s, " ", "0")
		}
		b.WriteString(s)
	}
	return b.String()
}

// layouts are the conversions that Go's layouts can say; the others are made by
// strftime1.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January",
	'd': "02", 'D': "01/02/06", 'e': "_2", 'F': "2006-01-02", 'H': "15", 'I': "03", 'm': "01", 'M': "04",
	'p': "PM", 'P': "pm", 'r': "03:04:05 PM", 'R': "15:04", 'S': "05", 'T': "15:04:05", 'x': "01/02/06",
	'X': "15:04:05", 'y': "06", 'z': "-0700", 'Z': "MST",
}

// strftime1 is one conversion, padded as C pads it. Weeks are counted from
// Sundays (U), Mondays (W) or as ISO 8601 does (V, G, g). An unknown one is returned with its
// percent sign.
func strftime1(c byte, t time.Time) string {
	if l, ok := layouts[c]; ok {
		return t.Format(l)
	}
	weekday := int(t.Weekday())
	switch c {
	case 'c':
		return t.Format("Mon Jan _2 15:04:05 ") + fmt.Sprint(t.Year())
	case 'Y':
		return fmt.Sprint(t.Year())
	case '%':
		return "%"
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100)
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay())
	case 'k':
		return fmt.Sprintf("%2d", t.Hour())
	case 'l':
		return fmt.Sprintf("%2d", (t.Hour()+11)%12+1)
	case 's':
		return fmt.Sprint(t.Unix())
	case 'u':
		return fmt.Sprint((weekday+6)%7 + 1)
	case 'w':
		return fmt.Sprint(weekday)
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-weekday)/7)
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(weekday+6)%7)/7)
	case 'G', 'g', 'V':
		y, w := t.ISOWeek()
		switch c {
		// Week numbers of ISO 8601 belong to a year of their own, which differs at the turn of
		// the year.
		case 'G':
			return fmt.Sprint(y)
		case 'g':
			return fmt.Sprintf("%02d", y%100)
		}
		return fmt.Sprintf("%02d", w)
	}
	return "%" + string(rune(c))
}
