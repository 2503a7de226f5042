package applet

import "strings"

// Options are what Getopt found: how often each letter was given, the values of
// those that take one, and the operands. Letters are ASCII, so an array does for the counts.
type Options struct {
	Count [128]uint16
	Value map[byte][]string
	Args  []string
	// order holds the options as they came.
	// Order holds the options as they came: of two that contradict each other
	// the last one counts, see Last.
	Order []byte
}

// Has reports whether an option was given.
func (o *Options) Has(f byte) bool { return o.Count[f] > 0 }

// Str returns the last value of an option.
func (o *Options) Str(f byte) string {
	if v := o.Value[f]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// Last returns which of some options came last, 0 if none did.
func (o *Options) Last(of string) byte {
	for i := len(o.Order) - 1; i >= 0; i-- {
		if strings.IndexByte(of, o.Order[i]) >= 0 {
			return o.Order[i]
		}
	}
	return 0
}

// Getopt takes the arguments apart as getopt_long does: spec has the letters,
// with ":" after those that take a value and "::" after those that may; a
// leading "+" stops at the first operand. long are "name=x" and "name=x:". A
// mistake is reported, with the usage, and ends the applet. Operands may stand between options,
// as GNU's getopt permutes; + forbids that, which programs need whose operands are another
// command.
func (c *Call) Getopt(spec string, long ...string) *Options {
	o := &Options{Value: map[byte][]string{}}
	stop := strings.HasPrefix(spec, "+")
	spec = strings.TrimPrefix(spec, "+")
	for i := 0; i < len(c.Args); i++ {
		arg := c.Args[i]
		switch {
		// What follows are operands, whatever they look like.
		case arg == "--":
			o.Args = append(o.Args, c.Args[i+1:]...)
			return o
		case strings.HasPrefix(arg, "--"):
			i += c.longOption(o, arg[2:], long, c.Args[i+1:])
		case len(arg) > 1 && arg[0] == '-':
			i += c.shortOptions(o, arg[1:], spec, c.Args[i+1:])
		case stop:
			o.Args = append(o.Args, c.Args[i:]...)
			return o
		default:
			o.Args = append(o.Args, arg)
		}
	}
	return o
}

// Add adds an option as if it had been given once more. Options that imply others are added so.
func (o *Options) Add(f byte) {
	o.Count[f]++
	o.Order = append(o.Order, f)
}

// shortOptions reads a cluster of letters; it returns how many further
// arguments it took. An error ends the applet, so the loop needs no way out.
func (c *Call) shortOptions(o *Options, letters, spec string, rest []string) int {
	for letters != "" {
		f := letters[0]
		letters = letters[1:]
		at := strings.IndexByte(spec, f)
		if at < 0 || f == ':' || f >= 128 {
			c.Errorf("invalid option -- '%c'", f)
			c.Usage()
		}
		o.Add(f)
		takes := strings.HasPrefix(spec[at+1:], ":")
		if !takes {
			continue
		}
		// An optional value must be part of the same word.
		if letters != "" || strings.HasPrefix(spec[at+1:], "::") {
			o.Value[f] = append(o.Value[f], letters)
			return 0
		}
		if len(rest) == 0 {
			c.Errorf("option requires an argument -- '%c'", f)
			c.Usage()
		}
		o.Value[f] = append(o.Value[f], rest[0])
		return 1
	}
	return 0
}

// longOption reads --NAME or --NAME=VALUE; it returns how many further
// arguments it took. A name may be cut short as long as only one option is
// meant, as getopt_long has it. A prefix that fits two names of one option is not ambiguous.
func (c *Call) longOption(o *Options, text string, long []string, rest []string) int {
	name, value, hasValue := strings.Cut(text, "=")
	found, exact := "", false
	for _, l := range long {
		n, f, _ := strings.Cut(l, "=")
		if n == name {
			found, exact = f, true
		}
	}
	for _, l := range long {
		n, f, _ := strings.Cut(l, "=")
		if exact || !strings.HasPrefix(n, name) {
			continue
		}
		if found != "" && found != f {
			c.Errorf("option '--%s' is ambiguous", name)
			c.Usage()
		}
		found = f
	}
	if found == "" {
		c.Errorf("unrecognized option '--%s'", text)
		c.Usage()
	}
	f := found[0]
	takes := strings.HasSuffix(found, ":")
	optional := strings.HasSuffix(found, "::")
	if hasValue && !takes {
		c.Errorf("option '--%s' doesn't allow an argument", name)
		c.Usage()
	}
	o.Add(f)
	switch {
	case !takes:
	case hasValue || optional:
		o.Value[f] = append(o.Value[f], value)
	case len(rest) == 0:
		c.Errorf("option '--%s' requires an argument", name)
		c.Usage()
	default:
		o.Value[f] = append(o.Value[f], rest[0])
		return 1
	}
	return 0
}
