package shell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/script"
)

// exportCmd is export and readonly, which only differ in the flag that they
// set. -n takes export's away; readonly stays. What it lists can be read back by a shell, as
// POSIX asks of -p.
func exportCmd(s *shell, argv []string) int {
	flag := flagExport
	if argv[0] == "readonly" {
		flag = flagReadonly
	}
	args := argv[1:]
	negate, list := false, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		o := args[0]
		args = args[1:]
		switch o {
		case "--":
		case "-p":
			list = true
			continue
		case "-n":
			negate = true
			continue
		default:
			return s.raise("illegal option %s", o)
		}
		break
	}
	// With -p operands are not looked at.
	if len(args) == 0 || list {
		for _, x := range s.vars.sorted(flag, flag) {
			s.out = append(s.out, argv[0]+" "+x.name...)
			if x.flags&flagUnset == 0 {
				s.out = append(s.out, "="+singleQuote(x.value)...)
			}
			s.out = append(s.out, '\n')
		}
		return 0
	}
	for _, a := range args {
		name, value, has := strings.Cut(a, "=")
		if !script.ValidName(name) {
			return s.raise("%s: bad variable name", name)
		}
		if has {
			if err := s.trySet(name, value, 0); err != nil {
				return s.raise("%v", err)
			}
		}
		if negate {
			if x := s.vars.find(name); x != nil {
				x.flags &^= flag
				// The environment was made with the variable in it.
				s.vars.env = nil
			}
			continue
		}
		// export of a variable that is not set keeps it in mind for later.
		s.vars.declare(name, flag)
	}
	return 0
}

// localCmd is local. A variable without a value is unset in the function, not
// inherited, unless it is read-only; "local -" is taken and does nothing. Scoping is dynamic, as
// ash's: functions that this one calls see its local variables.
func localCmd(s *shell, argv []string) int {
	if len(s.frames) == 0 {
		return s.raise("not in a function")
	}
	f := s.frames[len(s.frames)-1]
	for _, a := range argv[1:] {
		name, value, has := strings.Cut(a, "=")
		if name == "-" {
			continue
		}
		if !script.ValidName(name) {
			return s.raise("%s: bad variable name", name)
		}
		// Saved at each local of the name, also the second: popFrame puts back from the last to
		// the first.
		f.saved = append(f.saved, s.vars.save(name))
		// Without a value a local variable begins unset, in place of the outer
		// one.
		if x := s.vars.find(name); !has && x != nil && x.flags&flagReadonly == 0 {
			s.vars.unset(name)
		}
		if has {
			if err := s.trySet(name, value, 0); err != nil {
				return s.raise("%v", err)
			}
		}
	}
	return 0
}

// unsetCmd is unset. A name that is no variable is a function's, unless -v says
// otherwise. A name that is nothing is no error.
func unsetCmd(s *shell, argv []string) int {
	args := argv[1:]
	kind := byte(0)
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		o := args[0]
		args = args[1:]
		if o == "--" {
			break
		}
		if o != "-v" && o != "-f" {
			return s.raise("illegal option %s", o)
		}
		kind = o[1]
	}
	for _, name := range args {
		if kind != 'f' {
			if !script.ValidName(name) {
				return s.raise("%s: bad variable name", name)
			}
			if x := s.vars.find(name); x != nil {
				if x.flags&flagReadonly != 0 {
					return s.raise("%s: is read only", name)
				}
				s.vars.unset(name)
				continue
			}
		}
		if kind != 'v' && s.funcs[name] != nil {
			// Functions may be shared with a parent, and are copied first.
			s.own()
			delete(s.funcs, name)
		}
	}
	return 0
}

// shiftCmd is shift. Too far is a quiet 1, and nothing moves. The slice is shared with whoever
// called the function, and only its start moves.
func shiftCmd(s *shell, argv []string) int {
	n := 1
	if len(argv) > 1 {
		var ok bool
		if n, ok = s.number(argv[1]); !ok {
			return 2
		}
	}
	if n > len(s.args) {
		return 1
	}
	s.args = s.args[n:]
	return 0
}

// optionNames are the long names of options in the order of set -o; a letter
// if there is one.
var optionNames = [...]struct {
	name   string
	letter byte
}{
	{"errexit", 'e'}, {"noglob", 'f'}, {"ignoreeof", 'I'}, {"monitor", 'm'}, {"noexec", 'n'}, {"xtrace", 'x'}, {"verbose", 'v'},
	{"noclobber", 'C'}, {"allexport", 'a'}, {"notify", 'b'}, {"nounset", 'u'}, {"errtrace", 'E'}, {"vi", 'V'}, {"pipefail", 0},
}

// option returns the option of a letter, or with 0 the one of a long name; nil
// if there is none. pipefail has no letter. The pointer is into the shell's own options, which a
// fork copies.
func (o *options) option(letter byte, name string) *bool {
	if letter == 0 {
		for _, x := range optionNames {
			if x.name == name {
				if x.letter == 0 {
					return &o.pipefail
				}
				return o.option(x.letter, "")
			}
		}
		return nil
	}
	switch letter {
	case 'e':
		return &o.errexit
	case 'f':
		return &o.noglob
	case 'I':
		return &o.ignoreeof
	case 'm':
		return &o.monitor
	case 'n':
		return &o.noexec
	case 'x':
		return &o.xtrace
	case 'v':
		return &o.verbose
	case 'C':
		return &o.noclobber
	case 'a':
		return &o.allexport
	case 'b':
		return &o.notify
	case 'u':
		return &o.nounset
	case 'E':
		return &o.errtrace
	case 'V':
		return &o.vi
	}
	return nil
}

// letters is $-, in ash's order. c and s say how the shell was called; they can't be set.
func (o *options) letters() string {
	var b []byte
	for _, l := range []byte("VEubaCvxcsnmIfe") {
		switch l {
		case 'c':
			if o.fromC {
				b = append(b, l)
			}
		case 's':
			if o.fromStdin {
				b = append(b, l)
			}
		default:
			if *o.option(l, "") {
				b = append(b, l)
			}
		}
	}
	return string(b)
}

// setOptions takes options off the front of args. It is also what sh's own
// command line goes through: then more is called for c, s, i and l. end says
// that -- ended them, ok that all were known. A + before the letters takes them away. Options
// before a wrong one have been set.
func (s *shell) setOptions(args []string, more func(c byte) bool) (rest []string, end, ok bool) {
	for len(args) > 0 {
		a := args[0]
		if len(a) == 0 || a[0] != '-' && a[0] != '+' {
			break
		}
		args = args[1:]
		on := a[0] == '-'
		// A lone dash ends the options, and only -- may clear the arguments.
		if a == "-" || a == "--" {
			return args, a == "--", true
		}
		for i := 1; i < len(a); i++ {
			if a[i] == 'o' {
				if len(args) == 0 {
					listOptions(s, on)
					continue
				}
				p := s.opts.option(0, args[0])
				if p == nil {
					s.message("illegal option %co %s", a[0], args[0])
					return args, false, false
				}
				*p = on
				args = args[1:]
				continue
			}
			// Letters of set are sh's too; the others are what more knows.
			if p := s.opts.option(a[i], ""); p != nil {
				*p = on
			} else if more == nil || !more(a[i]) {
				s.raise("illegal option %c%c", a[0], a[i])
				return args, false, false
			}
		}
	}
	return args, false, true
}

// listOptions is set -o, or set +o in the form of commands.
func listOptions(s *shell, long bool) {
	for _, x := range optionNames {
		v := *s.opts.option(0, x.name)
		switch {
		case long && v:
			s.out = append(s.out, fmt.Sprintf("%-16son\n", x.name)...)
		case long:
			s.out = append(s.out, fmt.Sprintf("%-16soff\n", x.name)...)
		case v:
			s.out = append(s.out, "set -o "+x.name+"\n"...)
		default:
			s.out = append(s.out, "set +o "+x.name+"\n"...)
		}
	}
}

// setCmd is set: options and arguments, or without any the list of variables. The statuses differ
// as in ash: 2 and the end of the shell for a letter, 1 for a long name.
func setCmd(s *shell, argv []string) int {
	if len(argv) == 1 {
		for _, x := range s.vars.sorted(flagUnset, 0) {
			value := x.value
			// set shows dynamic variables as empty: no value of theirs is stored.
			if x.name == "LINENO" || x.name == "RANDOM" {
				value = ""
			}
			s.out = append(s.out, x.name+"="+singleQuote(value)+"\n"...)
		}
		return 0
	}
	rest, end, ok := s.setOptions(argv[1:], nil)
	if !ok {
		if s.raised {
			return 2
		}
		return 1
	}
	// set -- without arguments clears them.
	if len(rest) > 0 || end {
		s.args = append([]string(nil), rest...)
		// getopts starts over with new arguments.
		s.optPos = 0
		s.vars.set("OPTIND", "1", 0)
	}
	return 0
}

// getoptsCmd is getopts. Where in a cluster of letters it is, is the shell's to
// remember, since OPTIND only counts words; setting OPTIND starts over. It finds one option a
// call; status 1 ends the loop around it.
func getoptsCmd(s *shell, argv []string) int {
	if len(argv) < 3 {
		return s.raise("usage: getopts optstring var [arg]")
	}
	g := getopts{s: s, spec: argv[1], args: s.args, opt: "?"}
	if len(argv) > 3 {
		g.args = argv[3:]
	}
	g.spec, g.silent = strings.CutPrefix(g.spec, ":")
	status := 1
	if g.nextWord() {
		g.nextOption()
		status = 0
	}
	// OPTARG belongs to the option just found, and to no earlier one.
	s.vars.unset("OPTARG")
	for _, v := range [...]struct {
		name, value string
		has         bool
	}{{"OPTARG", g.argument, g.hasArgument}, {"OPTIND", strconv.Itoa(g.ind), true}, {argv[2], g.opt, true}} {
		if !v.has {
			continue
		}
		if err := s.trySet(v.name, v.value, 0); err != nil {
			return s.raise("%v", err)
		}
	}
	s.optPos = g.pos
	return status
}

// getopts is one run of it: what it finds is assigned at the end, in ash's
// order. Only then since an assignment may fail, and since OPTIND must be what was read before.
type getopts struct {
	s      *shell
	spec   string // without the colon that asks for silence
	silent bool
	args   []string
	word   string // the argument that is read
	pos    int    // where in it; 0 if it is read to its end
	ind    int    // OPTIND: while a word is read, it is already past it

	opt, argument string
	hasArgument   bool
}

// nextWord finds the word that has the next option; false if there is none. A
// word is gone on with if there are letters left in it, and it is still there. The conditions for
// going on are there because a script may have changed the arguments or OPTIND between two calls.
func (g *getopts) nextWord() bool {
	var err error
	g.ind, err = strconv.Atoi(g.s.vars.value("OPTIND"))
	// An OPTIND that is no number from 1 on starts over.
	if err != nil || g.ind < 1 {
		g.ind, g.s.optPos = 1, 0
	}
	g.pos = g.s.optPos
	if g.pos > 0 && g.ind >= 2 && g.ind-2 < len(g.args) && g.pos < len(g.args[g.ind-2]) {
		g.word = g.args[g.ind-2]
		return true
	}
	g.pos = 0
	switch {
	case g.ind > len(g.args), len(g.args[g.ind-1]) < 2, g.args[g.ind-1][0] != '-':
		return false
	case g.args[g.ind-1] == "--":
		g.ind++
		return false
	}
	g.word, g.pos = g.args[g.ind-1], 1
	g.ind++
	return true
}

// nextOption takes one letter; what is wrong is told of in ash's words, or by
// silent in the variables. The status is 0 in any case: something was found, if only "?".
func (g *getopts) nextOption() {
	c := g.word[g.pos]
	g.pos++
	i := strings.IndexByte(g.spec, c)
	switch {
	case i < 0 || c == ':':
		if g.silent {
			g.argument, g.hasArgument = string(c), true
		} else {
			_ = g.s.write(2, []byte("Illegal option -"+string(c)+"\n"))
		}
	case i+1 < len(g.spec) && g.spec[i+1] == ':':
		g.takeArgument(c)
		// The rest of the word, if any, was the argument.
		g.pos = len(g.word)
	default:
		g.opt, g.hasArgument = string(c), true
	}
	if g.pos >= len(g.word) {
		g.pos = 0
	}
}

// takeArgument takes the rest of the word, or the next one, as the option's. A
// missing one is told of, or is a colon if the script wants silence.
func (g *getopts) takeArgument(c byte) {
	g.opt = string(c)
	switch {
	case g.pos < len(g.word):
		g.argument, g.hasArgument = g.word[g.pos:], true
	case g.ind <= len(g.args):
		g.argument, g.hasArgument = g.args[g.ind-1], true
		g.ind++
	case g.silent:
		g.opt, g.argument, g.hasArgument = ":", string(c), true
	default:
		g.opt = "?"
		_ = g.s.write(2, []byte("No arg for -"+string(c)+" option\n"))
	}
}

// aliasCmd is alias, which defines and lists them. An alias of a name and one of its uses must be
// in different commands, see runAlias.
func aliasCmd(s *shell, argv []string) int {
	if len(argv) == 1 {
		names := make([]string, 0, len(s.alias))
		for n := range s.alias { //drydock:unordered sorted below
			names = append(names, n)
		}
		slices.Sort(names)
		for _, n := range names {
			s.out = append(s.out, n+"="+singleQuote(s.alias[n])+"\n"...)
		}
		return 0
	}
	status := 0
	for _, a := range argv[1:] {
		name, value, ok := strings.Cut(a, "=")
		if ok && name != "" {
			s.own()
			if s.alias == nil {
				s.alias = make(map[string]string)
			}
			s.alias[name] = value
			continue
		}
		if v, has := s.alias[a]; has {
			s.out = append(s.out, a+"="+singleQuote(v)+"\n"...)
			continue
		}
		_ = s.write(2, []byte("alias: "+a+" not found\n"))
		status = 1
	}
	return status
}

// unaliasCmd is unalias; -a takes all.
func unaliasCmd(s *shell, argv []string) int {
	s.own()
	if len(argv) > 1 && argv[1] == "-a" {
		s.alias = nil
		return 0
	}
	status := 0
	for _, a := range argv[1:] {
		if _, ok := s.alias[a]; !ok {
			_ = s.write(2, []byte("unalias: "+a+": not found\n"))
			status = 1
		}
		delete(s.alias, a)
	}
	return status
}
