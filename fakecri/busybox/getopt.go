package busybox

import "strings"

// options are what getopt found.
type options struct {
	count [128]uint16
	value map[byte][]string
	args  []string
	// order holds the options as they came.
	order []byte
}

func (o *options) has(f byte) bool { return o.count[f] > 0 }

// str returns the last value of an option.
func (o *options) str(f byte) string {
	if v := o.value[f]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// last returns which of some options came last, 0 if none did.
func (o *options) last(of string) byte {
	for i := len(o.order) - 1; i >= 0; i-- {
		if strings.IndexByte(of, o.order[i]) >= 0 {
			return o.order[i]
		}
	}
	return 0
}

// getopt takes the arguments apart as getopt_long does: spec has the letters,
// with ":" after those that take a value and "::" after those that may; a
// leading "+" stops at the first operand. long are "name=x" and "name=x:". A
// mistake is reported, with the usage, and ends the applet.
func (c *call) getopt(spec string, long ...string) *options {
	o := &options{value: map[byte][]string{}}
	stop := strings.HasPrefix(spec, "+")
	spec = strings.TrimPrefix(spec, "+")
	for i := 0; i < len(c.args); i++ {
		arg := c.args[i]
		switch {
		case arg == "--":
			o.args = append(o.args, c.args[i+1:]...)
			return o
		case strings.HasPrefix(arg, "--"):
			i += c.longOption(o, arg[2:], long, c.args[i+1:])
		case len(arg) > 1 && arg[0] == '-':
			i += c.shortOptions(o, arg[1:], spec, c.args[i+1:])
		case stop:
			o.args = append(o.args, c.args[i:]...)
			return o
		default:
			o.args = append(o.args, arg)
		}
	}
	return o
}

func (o *options) add(f byte) {
	o.count[f]++
	o.order = append(o.order, f)
}

// shortOptions reads a cluster of letters; it returns how many further
// arguments it took.
func (c *call) shortOptions(o *options, letters, spec string, rest []string) int {
	for letters != "" {
		f := letters[0]
		letters = letters[1:]
		at := strings.IndexByte(spec, f)
		if at < 0 || f == ':' || f >= 128 {
			c.errorf("invalid option -- '%c'", f)
			c.usage()
		}
		o.add(f)
		takes := strings.HasPrefix(spec[at+1:], ":")
		if !takes {
			continue
		}
		if letters != "" || strings.HasPrefix(spec[at+1:], "::") {
			o.value[f] = append(o.value[f], letters)
			return 0
		}
		if len(rest) == 0 {
			c.errorf("option requires an argument -- '%c'", f)
			c.usage()
		}
		o.value[f] = append(o.value[f], rest[0])
		return 1
	}
	return 0
}

func (c *call) longOption(o *options, text string, long []string, rest []string) int {
	name, value, hasValue := strings.Cut(text, "=")
	found := ""
	for _, l := range long {
		n, f, _ := strings.Cut(l, "=")
		if n == name {
			found = f
			break
		}
		if strings.HasPrefix(n, name) {
			if found != "" && found != f {
				c.errorf("option '--%s' is ambiguous", name)
				c.usage()
			}
			found = f
		}
	}
	if found == "" {
		c.errorf("unrecognized option '--%s'", text)
		c.usage()
	}
	f := found[0]
	takes := strings.HasSuffix(found, ":")
	optional := strings.HasSuffix(found, "::")
	if hasValue && !takes {
		c.errorf("option '--%s' doesn't allow an argument", name)
		c.usage()
	}
	o.add(f)
	switch {
	case !takes:
	case hasValue || optional:
		o.value[f] = append(o.value[f], value)
	case len(rest) == 0:
		c.errorf("option '--%s' requires an argument", name)
		c.usage()
	default:
		o.value[f] = append(o.value[f], rest[0])
		return 1
	}
	return 0
}
