package applets

import (
	"io"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Sort is sort. Bytes are compared, since no locale is set. All lines are held,
// and charged to the cgroup as they come: sort of something endless meets the
// OOM killer. -u keeps the first of equal lines; -c names the line, not its
// text. -m is not built, -T and -S are read and do nothing.
//
// Without a key the line is one. A key without flags of its own takes the
// global ones; -r then turns the whole order, else that key's.
func Sort() applet.Applet {
	return applet.New(runSort, "sort", "[-nghMVrucszbdfi] [-o FILE] [-t CHAR] [-k FROM[,TO]]... [FILE]...")
}

// sortKey is a -k: fields and characters count from 1; 0 is unset. Characters are bytes.
type sortKey struct {
	fromField, fromChar, toField, toChar int
	flags                                string
	// plain says that it has no flags of its own.
	plain bool
}

// sortFlags are those that may stand in a key. Some have no meaning there, and
// are taken all the same.
const sortFlags = "ngMcszbrdfihugV"

// runSort reads everything before it opens the output, so -o may name one of
// the inputs. Its errors have status 2, because 1 is -c's answer. Options that GNU has and
// BusyBox lacks are refused, so that scripts don't rely on them.
func runSort(c *applet.Call) int {
	o := c.GetoptStatus(2, "ngMhVucszbrdfik:o:t:T:S:", "stable=s", "reverse=r", "unique=u", "key=k:", "field-separator=t:", "output=o:", "numeric-sort=n")
	sep := byte('\n')
	if o.Has('z') {
		sep = 0
	}
	fieldSep := ""
	if o.Has('t') {
		fieldSep = o.Str('t')
		// The shell does not turn '\t' into a tab, so sort does.
		if fieldSep == `\t` {
			fieldSep = "\t"
		}
		if len(fieldSep) > 1 && fieldSep != `\0` {
			c.Errorf("bad -t parameter")
			return 2
		}
	}
	global := ""
	for _, f := range "ngMhVbrdfi" {
		if o.Has(byte(f)) {
			global += string(f)
		}
	}
	var keys []sortKey
	for _, k := range o.Value['k'] {
		key, ok := parseKey(k, global)
		if !ok {
			c.Errorf("unknown key option")
			return 2
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		keys = []sortKey{{fromField: 1, flags: global}}
	}
	var list []string
	files := o.Args
	if len(files) == 0 {
		files = []string{"-"}
	}
	// lineCost is what a line takes besides its text, in bytes.
	const lineCost = 24
	size := int64(0)
	for _, name := range files {
		r, err := c.Open(name)
		if err != nil {
			c.Errorf(applet.PlainOpen, name, applet.Strerror(err))
			return 2
		}
		l := c.Lines(r, sep)
		for {
			text, _, ok := l.Next()
			if !ok {
				break
			}
			list = append(list, text)
			size += int64(len(text)) + lineCost
			c.Hold(size)
		}
		r.Close()
	}
	return sorted(c, o, keys, list, fieldSep, sep)
}

// sorted orders and prints the lines, or with -c looks whether they are
// ordered. The sort is stable, which -s promises and -u needs to keep the first of equal lines.
func sorted(c *applet.Call, o *applet.Options, keys []sortKey, list []string, fieldSep string, sep byte) int {
	// The first key that differs decides.
	byKeys := func(a, b string) int {
		for _, k := range keys {
			if d := k.compare(a, b, fieldSep); d != 0 {
				return d
			}
		}
		return 0
	}
	whole := func(a, b string) int {
		if d := byKeys(a, b); d != 0 || o.Has('s') || o.Has('u') {
			return d
		}
		// Lines whose keys are equal are ordered as a whole, unless -s.
		d := strings.Compare(a, b)
		if o.Has('r') {
			d = -d
		}
		return d
	}
	if o.Has('c') {
		for i := 1; i < len(list); i++ {
			if d := byKeys(list[i-1], list[i]); d > 0 || d == 0 && o.Has('u') {
				c.Stderr("Check line " + applet.Itoa(i) + "\n")
				return 1
			}
		}
		return 0
	}
	sort.SliceStable(list, func(i, j int) bool { return whole(list[i], list[j]) < 0 })
	// The work of sorting, about that of comparing each line a few times.
	c.Spend(int64(len(list)) * 64)
	var w io.Writer = c.Out
	if o.Has('o') {
		f, err := c.View().Open(o.Str('o'), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
		if err != nil {
			c.Errorf(applet.CantOpen, o.Str('o'), applet.Strerror(err))
			return 2
		}
		defer f.Close()
		w = c.Stream(f)
	}
	for i, s := range list {
		if o.Has('u') && i > 0 && byKeys(list[i-1], s) == 0 {
			continue
		}
		if _, err := io.WriteString(w, s+string(rune(sep))); err != nil {
			return 2
		}
	}
	return 0
}

// parseKey reads FIELD[.CHAR][FLAGS][,FIELD[.CHAR][FLAGS]]; false if it is
// none. A first field of 0 is a mistake.
func parseKey(s, global string) (sortKey, bool) {
	k := sortKey{}
	from, to, hasTo := strings.Cut(s, ",")
	ok := true
	read := func(s string) (field, char int) {
		n := applet.LeadingDigits(s)
		field, err := strconv.Atoi(s[:n])
		if err != nil {
			ok = false
			return
		}
		s = s[n:]
		if strings.HasPrefix(s, ".") {
			n := applet.LeadingDigits(s[1:])
			char, _ = strconv.Atoi(s[1 : 1+n])
			s = s[1+n:]
		}
		for i := 0; i < len(s); i++ {
			if strings.IndexByte(sortFlags, s[i]) < 0 {
				ok = false
			}
		}
		k.flags += s
		return field, char
	}
	k.fromField, k.fromChar = read(from)
	if k.fromField == 0 {
		ok = false
	}
	if hasTo {
		k.toField, k.toChar = read(to)
	}
	// Flags of its own replace the global ones, all of them.
	if k.flags == "" {
		k.flags = global
		k.plain = true
	}
	return k, ok
}

// has reports whether a flag applies to the key, be it the key's own or a
// global one.
func (k sortKey) has(f byte) bool { return strings.IndexByte(k.flags, f) >= 0 }

// extract takes the key's part out of a line. An end before the start makes an empty key.
func (k sortKey) extract(line, sep string) string {
	// Most keys are the whole line.
	if k.fromField == 1 && k.fromChar == 0 && k.toField == 0 {
		if k.has('b') {
			return strings.TrimLeft(line, " \t")
		}
		return line
	}
	start, _ := fieldBounds(line, sep, k.fromField)
	if k.has('b') {
		start += len(line[start:]) - len(strings.TrimLeft(line[start:], " \t"))
	}
	if k.fromChar > 1 {
		start = min(len(line), start+k.fromChar-1)
	}
	end := len(line)
	if k.toField > 0 {
		s, e := fieldBounds(line, sep, k.toField)
		end = e
		// A last character counts from the start of its own field.
		if k.toChar > 0 {
			if k.has('b') {
				s += len(line[s:]) - len(strings.TrimLeft(line[s:], " \t"))
			}
			end = min(len(line), s+k.toChar)
		}
	}
	return line[start:max(start, end)]
}

// fieldBounds returns where the n-th field begins and ends. Without a separator
// a field begins with the white space before it. That is POSIX' rule, under which -k2 without -b
// compares the blanks, too.
func fieldBounds(line, sep string, n int) (int, int) {
	at := 0
	for i := 1; ; i++ {
		end := at
		if sep != "" {
			if j := strings.Index(line[at:], sep); j >= 0 {
				end = at + j
			} else {
				end = len(line)
			}
		} else {
			for end < len(line) && (line[end] == ' ' || line[end] == '\t') {
				end++
			}
			for end < len(line) && line[end] != ' ' && line[end] != '\t' {
				end++
			}
		}
		// Fields count from 1. A line with fewer has empty ones at its end.
		if i == n {
			return at, end
		}
		if end >= len(line) {
			return len(line), len(line)
		}
		at = end + len(sep)
	}
}

// compare orders two lines by the key: negative, 0 or positive. -d and -i drop what they ignore
// before comparing; they have no effect on numbers.
func (k sortKey) compare(a, b, sep string) int {
	x, y := k.extract(a, sep), k.extract(b, sep)
	d := 0
	switch {
	case k.has('n'), k.has('g'), k.has('h'):
		d = compareFloats(leadingNumber(x, k), leadingNumber(y, k))
	case k.has('M'):
		d = monthOf(x) - monthOf(y)
	case k.has('V'):
		d = applet.CompareVersions(x, y)
	default:
		if k.has('d') || k.has('i') {
			keep := func(r rune) rune {
				if k.has('d') && !(applet.IsWord(byte(r)) && r != '_' || r == ' ' || r == '\t') || k.has('i') && (r < 32 || r > 126) {
					return -1
				}
				return r
			}
			x, y = strings.Map(keep, x), strings.Map(keep, y)
		}
		if k.has('f') {
			x, y = strings.ToUpper(x), strings.ToUpper(y)
		}
		d = strings.Compare(x, y)
	}
	if k.has('r') {
		d = -d
	}
	return d
}

// compareFloats orders numbers. A difference won't do: that of two infinities,
// as -g has for what is no number, is not a number.
func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// leadingNumber reads the number that a key begins with, 0 if there is none.
// Only -g knows exponents and a plus sign, and puts what is no number before
// all numbers; -h multiplies by the unit that follows, in powers of 1024. Without -g what is no
// number counts as 0, among the numbers.
func leadingNumber(s string, k sortKey) float64 {
	s = strings.TrimLeft(s, " \t")
	n := 0
	if n < len(s) && (s[n] == '-' || k.has('g') && s[n] == '+') {
		n++
	}
	for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == '.') {
		n++
	}
	end := n
	if k.has('g') && n < len(s) && s[n]|0x20 == 'e' {
		m := n + 1
		if m < len(s) && (s[m] == '-' || s[m] == '+') {
			m++
		}
		if d := applet.LeadingDigits(s[m:]); d > 0 {
			end = m + d
		}
	}
	f, err := strconv.ParseFloat(s[:end], 64)
	if err != nil {
		if k.has('g') {
			return math.Inf(-1)
		}
		f, _ = strconv.ParseFloat(strings.TrimRight(s[:n], "."), 64)
	}
	if k.has('h') && n < len(s) {
		f *= math.Pow(1024, float64(strings.IndexByte("kmgtpe", s[n]|0x20)+1))
	}
	return f
}

// monthOf numbers the English names of months from 1, by their first three
// letters. What is no month is 0 and so comes first.
func monthOf(s string) int {
	s = strings.ToUpper(strings.TrimLeft(s, " \t"))
	if len(s) < 3 {
		return 0
	}
	i := strings.Index("JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC", s[:3])
	// A match that is not at a multiple of three straddles two names.
	if i < 0 || i%3 != 0 {
		return 0
	}
	return i/3 + 1
}
