package applets

import (
	"io/fs"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/internal/posix"
)

// Find is find. Its expression is compiled to closures before anything is
// visited, so that a mistake is reported first. -xdev and -mount are always true
// and do nothing; -ok runs its command without asking; access and change times
// are the modification time, as the file system keeps no other.
//
// -exec ... + gathers names to the end of the walk, where the real one runs as
// soon as a command line is full. -printf, -newerXY, -fprint and -regextype are
// not built: they are unrecognized, and end find.
func Find() applet.Applet { return applet.New(runFind, "find", "[-HL] [PATH]... [OPTIONS] [ACTIONS]") }

// finder is one run of find: the parser of the expression, and what the
// expression's closures change while the walk goes on. acts is whether the
// expression has an action of its own. now is taken once, so that a long walk
// judges all ages alike.
type finder struct {
	c          *applet.Call
	args       []string
	pos        int
	expr       findTest
	maxDepth   int
	minDepth   int
	depthFirst bool
	follow     bool
	acts       bool
	prune      bool
	code       int
	batches    []*findBatch
	now        time.Time
}

// found is what an expression judges.
type found struct {
	path  string
	fi    fs.FileInfo
	depth int
}

// findTest is a compiled part of the expression: a test, or an action, which is
// true as POSIX says of it.
type findTest func(f *found) bool

// findBatch is an -exec ... {} +.
type findBatch struct{ argv, names []string }

func runFind(c *applet.Call) int {
	f := &finder{c: c, maxDepth: -1, now: c.P.Now()}
	args := c.Args
	for len(args) > 0 && (args[0] == "-H" || args[0] == "-L" || args[0] == "-P") {
		// The last of the three counts. -H is taken for -P: operands that are links are
		// not followed.
		f.follow = args[0] == "-L"
		args = args[1:]
	}
	n := 0
	// Paths end at the first word that looks like a part of the expression; a lone dash
	// is a path.
	for n < len(args) && !(len(args[n]) > 1 && args[n][0] == '-') && args[n] != "!" && args[n] != "(" {
		n++
	}
	paths := args[:n]
	if n == 0 {
		paths = []string{"."}
	}
	f.args = args[n:]
	f.expr = func(*found) bool { return true }
	if len(f.args) > 0 {
		f.expr = f.or()
		// A word that nothing joins to the expression, such as a bracket that closes
		// none.
		if f.pos < len(f.args) {
			f.unknown(f.args[f.pos])
		}
	}
	// Without an action of its own the whole expression gets -print.
	if !f.acts {
		test := f.expr
		f.expr = func(x *found) bool {
			if test(x) {
				c.Print(x.path, "\n")
			}
			return true
		}
	}
	for _, p := range paths {
		f.walk(p, 0)
	}
	// What -exec + has gathered is run when all is visited.
	for _, b := range f.batches {
		if len(b.names) > 0 && !f.run(append(append([]string(nil), b.argv...), b.names...)) {
			f.code = 1
		}
	}
	return f.code
}

// walk visits a path and what is below it, in the order of names; the real one
// takes the order of the directory.
func (f *finder) walk(path string, depth int) {
	c := f.c
	c.Spend(4096)
	stat := c.View().Lstat
	if f.follow {
		stat = c.View().Stat
	}
	fi, err := stat(path)
	// With -L a link that leads nowhere is judged as the link.
	if err != nil && f.follow {
		fi, err = c.View().Lstat(path)
	}
	if err != nil {
		c.Errorf("%s: %s", path, applet.Strerror(err))
		f.code = 1
		return
	}
	x := &found{path, fi, depth}
	// -prune speaks of one path: what it said of an earlier one is past.
	f.prune = false
	if !f.depthFirst && depth >= f.minDepth {
		f.expr(x)
	}
	// With -depth the expression is yet to be judged here, so -prune has no effect, as
	// POSIX says.
	if fi.IsDir() && !f.prune && (f.maxDepth < 0 || depth < f.maxDepth) {
		list, err := c.View().ReadDir(path)
		if err != nil {
			c.Errorf("%s: %s", path, applet.Strerror(err))
			f.code = 1
		}
		for _, e := range list {
			f.walk(applet.Join(path, e.Name()), depth+1)
		}
	}
	if f.depthFirst && depth >= f.minDepth {
		f.expr(x)
	}
}

// unknown ends find at a word that the language doesn't have.
func (f *finder) unknown(arg string) {
	f.c.Errorf("unrecognized: %s", arg)
	f.c.Usage()
}

// peek returns the next word of the expression, "" at its end.
func (f *finder) peek() string {
	if f.pos < len(f.args) {
		return f.args[f.pos]
	}
	return ""
}

// or parses the operator that binds least. It stops early like Go's ||, so that an action
// runs only if what precedes it leaves that open.
func (f *finder) or() findTest {
	left := f.and()
	for f.peek() == "-o" || f.peek() == "-or" {
		f.pos++
		// Copies, as left is assigned anew while the closure needs what it was.
		a, b := left, f.and()
		left = func(x *found) bool { return a(x) || b(x) }
	}
	return left
}

// and parses terms in a row; the operator between them may be left out.
func (f *finder) and() findTest {
	left := f.not()
	for {
		switch f.peek() {
		case "-a", "-and":
			f.pos++
		case "-o", "-or", ")", "":
			return left
		}
		a, b := left, f.not()
		left = func(x *found) bool { return a(x) && b(x) }
	}
}

// not parses negations and brackets, which nest.
func (f *finder) not() findTest {
	switch f.peek() {
	case "!", "-not":
		f.pos++
		test := f.not()
		return func(x *found) bool { return !test(x) }
	case "(":
		f.pos++
		test := f.or()
		if f.peek() != ")" {
			f.c.Die("unpaired '('")
		}
		f.pos++
		return test
	}
	return f.primary()
}

// value returns the operand of a primary, or ends find if there is none.
func (f *finder) value(name string) string {
	if f.pos >= len(f.args) {
		f.c.Die("%s requires an argument", name)
	}
	f.pos++
	return f.args[f.pos-1]
}

// compared reads +N, -N or N and returns a test of numbers.
func (f *finder) compared(s string, suffixes map[string]int64) func(n int64) bool {
	how := byte(0)
	if s != "" && (s[0] == '+' || s[0] == '-') {
		how, s = s[0], s[1:]
	}
	want := f.c.Sized(s, suffixes)
	return func(n int64) bool {
		switch how {
		case '+':
			return n > want
		case '-':
			return n < want
		}
		return n == want
	}
}

// primary parses a test, an action or an option. Options are true for every path and
// count for the whole walk, wherever they stand.
func (f *finder) primary() findTest {
	if f.pos >= len(f.args) {
		return func(*found) bool { return true }
	}
	op := f.args[f.pos]
	f.pos++
	c := f.c
	always := func(*found) bool { return true }
	switch op {
	case "-name", "-iname":
		p := f.value(op)
		fold := op == "-iname"
		// Slashes at the end of a path that was named don't belong to its last name.
		return func(x *found) bool { return wildcard(p, applet.Base(strings.TrimRight(x.path, "/")), fold) }
	case "-path", "-wholename", "-ipath":
		p := f.value(op)
		return func(x *found) bool { return wildcard(p, x.path, op == "-ipath") }
	case "-regex":
		p := f.value(op)
		return findRegex(c, p)
	case "-type":
		t := f.value(op)
		// Several letters may be listed, as GNU's f,d.
		return func(x *found) bool { return strings.Contains(t, typeLetter(x.fi.Mode())) }
	case "-maxdepth":
		f.maxDepth = int(c.Number(f.value(op)))
		return always
	case "-mindepth":
		f.minDepth = int(c.Number(f.value(op)))
		return always
	case "-depth":
		f.depthFirst = true
		return always
	case "-xdev", "-mount":
		return always
	case "-follow":
		f.follow = true
		return always
	case "-true":
		return always
	case "-false":
		return func(*found) bool { return false }
	case "-print":
		f.acts = true
		return func(x *found) bool { c.Print(x.path, "\n"); return true }
	case "-print0":
		f.acts = true
		return func(x *found) bool { c.Print(x.path, "\x00"); return true }
	// The walk looks at the flag after the expression.
	case "-prune":
		return func(x *found) bool { f.prune = true; return true }
	case "-quit":
		f.acts = true
		// What -exec ... + has gathered by then is not run.
		return func(*found) bool { c.Exit(f.code); return true }
	case "-delete":
		// A directory must be empty by the time it goes.
		f.acts, f.depthFirst = true, true
		return f.delete
	case "-exec", "-ok":
		f.acts = true
		return f.exec(op)
	}
	if test := f.property(op); test != nil {
		return test
	}
	f.unknown(op)
	return nil
}

// property reads a test of what stat says.
func (f *finder) property(op string) findTest {
	c := f.c
	switch op {
	case "-newer":
		name := f.value(op)
		fi, err := c.View().Stat(name)
		if err != nil {
			c.Die("%s: %s", name, applet.Strerror(err))
		}
		return func(x *found) bool { return x.fi.ModTime().After(fi.ModTime()) }
	case "-size":
		s := f.value(op)
		units := map[string]int64{"c": 1, "w": 2, "b": 512, "k": 1024, "M": 1 << 20, "G": 1 << 30}
		// Without a suffix sizes are in blocks, rounded up, as POSIX has it.
		unit := int64(512)
		if u, ok := units[s[max(0, len(s)-1):]]; ok {
			unit, s = u, s[:len(s)-1]
		}
		test := f.compared(s, nil)
		// Sizes are rounded up to units, so -size -1k finds empty files only.
		return func(x *found) bool { return test((x.fi.Size() + unit - 1) / unit) }
	case "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin":
		unit := 24 * time.Hour
		if strings.HasSuffix(op, "min") {
			unit = time.Minute
		}
		test := f.compared(f.value(op), nil)
		// Ages are cut off to whole units: -mtime 0 is the last 24 hours.
		return func(x *found) bool { return test(int64(f.now.Sub(x.fi.ModTime()) / unit)) }
	case "-links":
		test := f.compared(f.value(op), nil)
		return func(x *found) bool { return test(int64(c.Links(x.path, x.fi))) }
	case "-inum":
		test := f.compared(f.value(op), nil)
		return func(x *found) bool { return test(int64(applet.SysOf(x.fi).Ino)) }
	case "-user", "-group":
		file := applet.PasswdFile
		if op == "-group" {
			file = applet.GroupFile
		}
		name := f.value(op)
		id, ok := c.Lookup(file, name)
		if !ok {
			c.Die("unknown %s %s", op[1:], name)
		}
		return func(x *found) bool {
			if op == "-group" {
				return applet.SysOf(x.fi).GID == id
			}
			return applet.SysOf(x.fi).UID == id
		}
	// The numbers are X_OK, R_OK and W_OK of access(2).
	case "-executable":
		return func(x *found) bool { return c.View().Access(x.path, 1) == nil }
	case "-readable":
		return func(x *found) bool { return c.View().Access(x.path, 4) == nil }
	case "-writable":
		return func(x *found) bool { return c.View().Access(x.path, 2) == nil }
	}
	return f.emptyOrPerm(op)
}

// emptyOrPerm reads the tests that are left, or returns nil. A mode is exact,
// or with - all of its bits, with / or + any.
func (f *finder) emptyOrPerm(op string) findTest {
	c := f.c
	switch op {
	case "-empty":
		return func(x *found) bool {
			if x.fi.IsDir() {
				list, err := c.View().ReadDir(x.path)
				return err == nil && len(list) == 0
			}
			return x.fi.Mode().IsRegular() && x.fi.Size() == 0
		}
	case "-perm":
		s := f.value(op)
		how := byte(0)
		if s != "" && (s[0] == '-' || s[0] == '/' || s[0] == '+') {
			how, s = s[0], s[1:]
		}
		m, ok := applet.ParseMode(s, 0, 0)
		if !ok {
			c.Die("invalid mode '%s'", s)
		}
		want := applet.OctalMode(m)
		return func(x *found) bool {
			have := applet.OctalMode(x.fi.Mode())
			switch how {
			case '-':
				return have&want == want
			case '/', '+':
				// No bits at all ask for nothing, so every file has any of them.
				return have&want != 0 || want == 0
			}
			return have == want
		}
	}
	return nil
}

// delete removes what was found; an error does not end the walk.
func (f *finder) delete(x *found) bool {
	// rmdir(2) refuses the name ".", so find . -delete leaves it.
	if x.path == "." {
		return true
	}
	if err := f.c.View().Remove(x.path); err != nil {
		f.c.Errorf("%s: %s", x.path, applet.Strerror(err))
		f.code = 1
	}
	return true
}

// exec reads a command up to ; or {} +. Its words are kept; {} may be part of a
// word, as GNU has it.
func (f *finder) exec(op string) findTest {
	start := f.pos
	// A + ends the command only after {}; elsewhere it is a word.
	for f.pos < len(f.args) && f.args[f.pos] != ";" && !(f.args[f.pos] == "+" && f.pos > start && f.args[f.pos-1] == "{}") {
		f.pos++
	}
	if f.pos >= len(f.args) || f.pos == start {
		f.c.Die("%s requires an argument", op)
	}
	argv := f.args[start:f.pos]
	f.pos++
	if f.args[f.pos-1] == "+" {
		// The {} goes, as the names take its place at the end.
		b := &findBatch{argv: argv[:len(argv)-1]}
		f.batches = append(f.batches, b)
		return func(x *found) bool { b.names = append(b.names, x.path); return true }
	}
	return func(x *found) bool {
		// A copy: argv serves every match.
		args := make([]string, len(argv))
		for i, a := range argv {
			args[i] = strings.ReplaceAll(a, "{}", x.path)
		}
		return f.run(args)
	}
}

// run runs a command and reports whether it succeeded.
func (f *finder) run(argv []string) bool {
	child, err := f.c.Spawn(argv, nil, nil)
	// A command that can't be started is false, as one that fails.
	if err != nil {
		f.c.Errorf("%s: %s", argv[0], applet.Strerror(err))
		return false
	}
	return f.c.Wait(child) == 0
}

// typeLetter is what -type calls a kind of file.
func typeLetter(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "d"
	case m&fs.ModeSymlink != 0:
		return "l"
	// Character devices have ModeDevice set as well, so they are asked for first.
	case m&fs.ModeCharDevice != 0:
		return "c"
	case m&fs.ModeDevice != 0:
		return "b"
	case m&fs.ModeNamedPipe != 0:
		return "p"
	case m&fs.ModeSocket != 0:
		return "s"
	}
	return "f"
}

// wildcard matches as fnmatch(3): * and ? also match slashes.
func wildcard(pattern, s string, fold bool) bool {
	if fold {
		pattern, s = strings.ToLower(pattern), strings.ToLower(s)
	}
	return wildcardAt(pattern, s)
}

// wildcardAt matches all of s. A star tries every rest, which takes exponential time at
// worst, and little for patterns that people write.
func wildcardAt(p, s string) bool {
	for p != "" {
		switch p[0] {
		case '*':
			// A row of stars is as good as one, and each would multiply the tries.
			for p != "" && p[0] == '*' {
				p = p[1:]
			}
			for i := 0; i <= len(s); i++ {
				if wildcardAt(p, s[i:]) {
					return true
				}
			}
			return false
		case '?':
			if s == "" {
				return false
			}
		case '[':
			n, ok := bracketMatch(p, s)
			if n > 0 {
				if !ok {
					return false
				}
				p, s = p[n:], s[1:]
				continue
			}
			// A bracket that is never closed is a character like any other.
			if s == "" || s[0] != '[' {
				return false
			}
		case '\\':
			// A backslash at the end stands for itself.
			if len(p) > 1 {
				p = p[1:]
			}
			fallthrough
		default:
			if s == "" || s[0] != p[0] {
				return false
			}
		}
		p, s = p[1:], s[1:]
	}
	return s == ""
}

// bracketMatch matches a bracket expression against the first byte of s; it
// returns the expression's length, 0 if it is none.
func bracketMatch(p, s string) (int, bool) {
	i := 1
	negate := i < len(p) && (p[i] == '!' || p[i] == '^')
	if negate {
		i++
	}
	match := false
	for first := true; ; first = false {
		if i >= len(p) {
			return 0, false
		}
		// A ] in the first place is a member of the set.
		if p[i] == ']' && !first {
			return i + 1, s != "" && match != negate
		}
		if strings.HasPrefix(p[i:], "[:") {
			if end := strings.Index(p[i:], ":]"); end > 0 {
				match = match || s != "" && strings.IndexByte(string(applet.ClassBytes(p[i+2:i+end])), s[0]) >= 0
				i += end + 2
				continue
			}
		}
		lo, hi := p[i], p[i]
		i++
		// A dash before the closing bracket is a member, too.
		if i+1 < len(p) && p[i] == '-' && p[i+1] != ']' {
			hi = p[i+1]
			i += 2
		}
		match = match || s != "" && s[0] >= lo && s[0] <= hi
	}
}

// findRegex matches whole paths with a basic regular expression.
func findRegex(c *applet.Call, pattern string) findTest {
	re, err := posix.Compile(pattern, 0)
	if err != nil {
		c.Die("bad regex '%s': %s", pattern, err)
	}
	return func(x *found) bool {
		loc := re.Find(x.path)
		return loc != nil && loc[0] == 0 && loc[1] == len(x.path)
	}
}
