package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/arith"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// builtin is a command that the shell runs itself.
//
// Exactly one of run and flow is set. run returns a status, and flush writes what it said
// afterwards; flow runs commands itself, whose output must not wait.
type builtin struct {
	// run writes to s.out; flow runs commands itself.
	run  func(s *shell, argv []string) int
	flow func(s *shell, argv []string, flags evalFlags) int
	// special builtins come before functions, keep the assignments before
	// them, and end the shell when they fail.
	special bool
}

// builtinNames are the builtins, in the order of help.
var builtinNames = [...]string{
	".", ":", "[", "[[", "alias", "bg", "break", "cd", "chdir", "command", "continue", "echo", "eval", "exec", "exit", "export", "false", "fg",
	"getopts", "hash", "help", "history", "jobs", "kill", "let", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift",
	"source", "test", "times", "trap", "true", "type", "ulimit", "umask", "unalias", "unset", "wait",
}

// builtinOf returns the builtin of a name, if there is one. A builtin wins over a file in PATH,
// so an image's own echo is not run by its scripts.
func builtinOf(name string) (builtin, bool) {
	b, ok := specialBuiltin(name)
	if !ok {
		b, ok = plainBuiltin(name)
	}
	return b, ok
}

// specialBuiltin returns a special builtin, by POSIX's list with local and
// source. It is a switch and no map, since maps of functions would be made for
// each shell, or be global.
func specialBuiltin(name string) (builtin, bool) {
	b := builtin{special: true}
	switch name {
	case ":":
		b.run = trueCmd
	case ".", "source":
		b.flow = dotCmd
	case "break", "continue":
		b.run = breakCmd
	case "eval":
		b.flow = evalCmd
	case "exec":
		// Under command or eval there are no redirections of the command to make permanent.
		b.flow = func(s *shell, argv []string, _ evalFlags) int { return execCmd(s, argv, &redirection{s: s}) }
	case "exit":
		b.run = exitCmd
	case "export", "readonly":
		b.run = exportCmd
	case "local":
		b.run = localCmd
	case "return":
		b.run = returnCmd
	case "set":
		b.run = setCmd
	case "shift":
		b.run = shiftCmd
	case "times":
		b.run = timesCmd
	case "trap":
		b.run = trapCmd
	case "unset":
		b.run = unsetCmd
	default:
		return b, false
	}
	return b, true
}

// plainBuiltin returns a builtin that is not special. history is empty, as in a
// shell that is not interactive; times is 0.
func plainBuiltin(name string) (builtin, bool) {
	b := builtin{}
	switch name {
	case "true":
		b.run = trueCmd
	case "false":
		b.run = func(*shell, []string) int { return 1 }
	case "echo":
		b.run = echoCmd
	case "printf":
		b.run = printfCmd
	case "test", "[", "[[":
		b.run = testCmd
	case "cd", "chdir":
		b.run = cdCmd
	case "pwd":
		b.run = pwdCmd
	case "command":
		b.flow = commandCmd
	case "type":
		b.run = typeCmd
	case "hash":
		b.run = hashCmd
	case "alias":
		b.run = aliasCmd
	case "unalias":
		b.run = unaliasCmd
	case "wait":
		b.run = waitCmd
	case "jobs":
		b.run = jobsCmd
	case "fg", "bg":
		b.run = fgCmd
	case "kill":
		b.run = killCmd
	case "read":
		b.run = readCmd
	case "getopts":
		b.run = getoptsCmd
	case "umask":
		b.run = umaskCmd
	case "ulimit":
		b.run = ulimitCmd
	case "let":
		b.run = letCmd
	case "help":
		b.run = helpCmd
	case "history":
		b.run = trueCmd
	default:
		return b, false
	}
	return b, true
}

// trueCmd is :, true and history. Arguments have been expanded by then, which is what ":
// ${X:=default}" is written for.
func trueCmd(*shell, []string) int { return 0 }

// number reads a number of at least 0, or raises an error, in ash's words:
// signs are illegal, too.
func (s *shell) number(t string) (int, bool) {
	n, err := strconv.ParseUint(t, 10, 31)
	if err != nil {
		s.raise("Illegal number: %s", t)
		return 0, false
	}
	return int(n), true
}

// breakCmd is break and continue. Outside of a loop they do nothing, as in ash.
func breakCmd(s *shell, argv []string) int {
	n := 1
	if len(argv) > 1 {
		var ok bool
		if n, ok = s.number(argv[1]); !ok {
			return 2
		}
		// break 0 is an error, as in ash.
		if n == 0 {
			return s.raise("Illegal number: %s", argv[1])
		}
	}
	if s.loops == 0 {
		return 0
	}
	// More levels than there are loops end all of them.
	s.skip, s.skipCount = skipBreak, min(n, s.loops)
	if argv[0] == "continue" {
		s.skip = skipContinue
	}
	return 0
}

// returnCmd is return, of a function, a sourced file or a script. In a trap's
// action the status is that of before the trap. Outside of a function it ends the script, see
// invocation.end.
func returnCmd(s *shell, argv []string) int {
	status := s.status
	if len(argv) > 1 {
		n, ok := s.number(argv[1])
		if !ok {
			return 2
		}
		status = n & 0xff
	} else if s.inTrap && s.calls == 0 {
		status = s.trapStatus
	}
	s.skip, s.status = skipReturn, status
	return status
}

// exitCmd is exit. Within a trap it goes back to the status of before, unless
// it has a number.
func exitCmd(s *shell, argv []string) int {
	status := s.status
	if s.inTrap {
		status = s.trapStatus
	}
	if len(argv) > 1 {
		n, ok := s.number(argv[1])
		if !ok {
			return 2
		}
		status = n & 0xff
	}
	// finish returns this, after the trap of EXIT.
	if s.inTrap {
		s.trapStatus = status
	}
	s.exit(status)
	return status
}

// evalCmd is eval. A text that can't be read at all ends the shell; if some
// lines can, they run first. Lines are counted as those of a script of its own. evalExit is taken
// away by the mask: a program that eval runs does not take the shell's place.
func evalCmd(s *shell, argv []string, flags evalFlags) int {
	args := argv[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return 0
	}
	// Errors of the text are eval's, errors of its commands theirs.
	command := s.command
	s.command = "eval"
	p := s.in.cache.Get(strings.Join(args, " "))
	if p.Err != "" && len(p.Stmts) == 0 {
		if p.Unsupported != "" {
			s.warn("a construct that ash does not have: %s", p.Unsupported)
		}
		return s.fail(2, "%s", p.Err)
	}
	s.command = command
	return s.run(p, flags&evalTested)
}

// dotCmd is . and source, which looks in PATH for a name without a slash, and
// not here. Arguments, which POSIX leaves out, are the file's own while it
// runs. A return in it ends the file.
//
// The file runs in this shell, so variables and functions of it stay. Failing is fatal: . is a
// special builtin. The file is parsed once for all containers of the machine that share the text.
func dotCmd(s *shell, argv []string, flags evalFlags) int {
	if len(argv) < 2 {
		s.exit(2)
		return 2
	}
	name := argv[1]
	was := s.command
	s.command = argv[0]
	path := name
	if !strings.Contains(name, "/") {
		path = ""
		for dir := range strings.SplitSeq(s.vars.value("PATH"), ":") {
			p := dir + "/" + name
			// An empty element of PATH is the working directory.
			if dir == "" {
				p = name
			}
			if fi, err := s.p.View().Stat(p); err == nil && fi.Mode().IsRegular() {
				path = p
				break
			}
		}
		// What PATH does not have is fatal: a special builtin has failed.
		if path == "" {
			return s.fail(2, "%s: not found", name)
		}
	}
	data, err := s.p.View().ReadFile(path)
	if err != nil {
		return s.fail(2, "can't open '%s': %s", path, explain(err, ""))
	}
	s.command = path
	args, in, loops := s.args, s.input, s.loops
	if len(argv) > 2 {
		s.args = argv[2:]
	}
	// The file is a script of its own: its lines count from 1, and a break in
	// it ends no loop around.
	s.input, s.loops = &input{}, 0
	// return works in the file as it does in a function.
	s.calls++
	status := s.run(s.in.cache.Get(string(data)), flags&evalTested)
	s.calls--
	s.input, s.loops, s.command = in, loops, was
	if len(argv) > 2 {
		s.args = args
	}
	if s.skip == skipReturn {
		s.skip = skipNone
		status = s.status
	}
	return status
}

// execCmd is exec: with a command it replaces the shell, without one the
// redirections stay. A command that can't be run ends the shell. With a command it returns after
// that command has ended, see shell.exec.
func execCmd(s *shell, argv []string, saved *redirection) int {
	s.spend(costBuiltin)
	args := argv[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	arg0 := ""
	if len(args) > 1 && args[0] == "-a" {
		arg0, args = args[1], args[2:]
	}
	if len(args) == 0 {
		// The saved copies are closed, so restore finds nothing to undo.
		saved.drop()
		return 0
	}
	command := s.command
	s.command = "exec"
	path, err := s.find(args[0])
	if err != nil {
		status := s.cannotRun(args[0], err)
		s.exit(status)
		return status
	}
	// exec -a names the program differently; its file is looked up by the real
	// name.
	if arg0 != "" {
		args = append([]string{arg0}, args[1:]...)
	}
	status := s.exec(path, args, saved)
	s.command = command
	// A script without #! has run to its end here.
	if s.skip == skipNone {
		s.exit(status)
	}
	return status
}

// commandCmd is command: no functions, and special builtins lose what makes
// them special. -p searches the default path, -v and -V describe. Scripts use "command -v NAME"
// to ask whether a program is there; its status is what counts.
func commandCmd(s *shell, argv []string, flags evalFlags) int {
	args := argv[1:]
	verbose, path := byte(0), false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		o := args[0]
		args = args[1:]
		if o == "--" {
			break
		}
		for i := 1; i < len(o); i++ {
			switch o[i] {
			case 'v', 'V':
				verbose = o[i]
			case 'p':
				path = true
			default:
				s.command = "command"
				return s.raise("illegal option -%c", o[i])
			}
		}
	}
	if len(args) == 0 {
		return 0
	}
	if verbose != 0 {
		s.command = "command"
		status := describe(s, args[0], verbose == 'V')
		return status
	}
	// Functions are passed over: that is what command is for.
	if b, ok := builtinOf(args[0]); ok {
		// Under command the failure of a special builtin ends no shell.
		b.special = false
		if args[0] == "exec" {
			return execCmd(s, args, &redirection{s: s})
		}
		return s.runBuiltin(b, args, flags)
	}
	if path {
		// PATH is only changed for the search and the program.
		old := s.vars.save("PATH")
		s.vars.set("PATH", "/sbin:/usr/sbin:/bin:/usr/bin", 0)
		status := s.external(args, false, &redirection{s: s})
		s.vars.giveBack(old)
		return status
	}
	return s.external(args, false, &redirection{s: s})
}

// describe says what a name means as a command, for command -v, command -V and
// type; 127 if nothing.
//
// The order is that in which the shell itself would look: keywords, aliases, special builtins,
// functions, builtins, programs.
func describe(s *shell, name string, long bool) int {
	say := func(short, text string) int {
		if long {
			s.out = append(s.out, name+text+"\n"...)
		} else {
			s.out = append(s.out, short+"\n"...)
		}
		return 0
	}
	if isKeyword(name) {
		return say(name, " is a shell keyword")
	}
	if a, ok := s.alias[name]; ok {
		return say("alias "+name+"="+singleQuote(a), " is an alias for "+a)
	}
	b, ok := builtinOf(name)
	// A function can't hide a special builtin.
	if s.funcs[name] != nil && !b.special {
		return say(name, " is a function")
	}
	if ok {
		if b.special {
			return say(name, " is a special shell builtin")
		}
		return say(name, " is a shell builtin")
	}
	path, err := s.find(name)
	// A name with a slash is taken as it is, so it may not be executable.
	if err == nil && strings.Contains(name, "/") {
		// 1 is X_OK.
		err = s.p.View().Access(name, 1)
	}
	// A standalone applet has no file that could be shown.
	if err == nil && path == kernel.StandaloneApplet {
		return say(name, " is "+name)
	}
	if err == nil {
		return say(path, " is "+path)
	}
	if long {
		s.out = append(s.out, name+": not found\n"...)
	}
	return 127
}

// isKeyword reports whether a name is reserved.
func isKeyword(name string) bool {
	switch name {
	case "!", "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "then", "until", "while", "{", "}":
		return true
	}
	return false
}

// typeCmd is type.
func typeCmd(s *shell, argv []string) int {
	status := 0
	for _, name := range argv[1:] {
		if describe(s, name, true) != 0 {
			status = 127
		}
	}
	return status
}

// hashCmd is hash: it looks programs up and remembers them; -r forgets. It
// lists nothing. Failing is not raised: hash is no special builtin, and goes on with the next
// name.
func hashCmd(s *shell, argv []string) int {
	if len(argv) > 1 && argv[1] == "-r" {
		s.programs.at = nil
		return 0
	}
	status := 0
	for _, name := range argv[1:] {
		// Builtins and functions are not looked for in PATH.
		if _, ok := builtinOf(name); ok || s.funcs[name] != nil {
			continue
		}
		if _, err := s.find(name); err != nil {
			s.message("%s: %s", name, explain(err, "not found"))
			status = 1
		}
	}
	return status
}

// letCmd is let: the status says whether the last expression is not 0.
func letCmd(s *shell, argv []string) int {
	if len(argv) < 2 {
		return s.raise("expression expected")
	}
	var v int64
	for _, t := range argv[1:] {
		var err error
		if v, err = arith.Eval(t, arithVars{s}); err != nil {
			return s.raise("%v", err)
		}
	}
	return exitStatus(v != 0)
}

// letClause is let as Bash's grammar has it, back as a command. The parser has read the operands
// as expressions; printed, they are evaluated as ash's let does.
func (s *shell) letClause(x *syntax.LetClause) int {
	argv := []string{"let"}
	for _, e := range x.Exprs {
		argv = append(argv, (&expander{s: s}).arithSource(e))
	}
	return s.runBuiltin(builtin{run: letCmd}, argv, 0)
}

// timeClause is the time that scripts in Bash's grammar have; for ash it is a
// program, which reports alike. Here it is the shell that measures, so it may
// be before a function or a pipeline. The processor's times are 0: what a program uses is
// accounted to the container.
func (s *shell) timeClause(x *syntax.TimeClause) int {
	start := s.p.Now()
	status := 0
	if x.Stmt != nil {
		status = s.stmt(x.Stmt, 0)
		s.settle()
	}
	d := s.p.Now().Sub(start)
	min := int(d.Minutes())
	sec := d.Seconds() - float64(min)*60
	_ = s.write(2, []byte("real\t"+strconv.Itoa(min)+"m "+strconv.FormatFloat(sec, 'f', 2, 64)+"s\nuser\t0m 0.00s\nsys\t0m 0.00s\n"))
	return status
}

// helpCmd is help: the names, in one line where ash wraps them.
func helpCmd(s *shell, _ []string) int {
	s.out = append(s.out, "Built-in commands:\n------------------\n\t"+strings.Join(builtinNames[:], " ")+"\n"...)
	return 0
}
