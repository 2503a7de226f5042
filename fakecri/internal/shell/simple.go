package shell

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/script"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
)

// declCall makes of Bash's declaring clauses the simple commands that they are
// for ash: the parser knows export and local as clauses of their own.
//
// The words keep their parts, so quoting in a value works as in an assignment. Package script has
// refused arrays and indexes before.
func declCall(x *syntax.DeclClause) *syntax.CallExpr {
	call := &syntax.CallExpr{Args: []*syntax.Word{{Parts: []syntax.WordPart{x.Variant}}}}
	for _, a := range x.Args {
		w := &syntax.Word{}
		if a.Name != nil {
			t := *a.Name
			// A naked name stays a word; the others are put together as they were
			// written.
			if !a.Naked {
				t.Value += "="
				if a.Append {
					t.Value = a.Name.Value + "+="
				}
			}
			w.Parts = append(w.Parts, &t)
		}
		if a.Value != nil {
			w.Parts = append(w.Parts, a.Value.Parts...)
		}
		call.Args = append(call.Args, w)
	}
	return call
}

// arguments expands the words of a simple command. The first ones may expand to
// nothing: then the next is the command. After export and its like, what looks
// as an assignment is not split.
func (s *shell) arguments(words []*syntax.Word) []string {
	argv := make([]string, 0, len(words)+1)
	// Words are expanded one at a time, since the first field decides how the rest is
	// expanded.
	argv = s.expandFields(argv, words[:1])
	for len(argv) == 0 && len(words) > 1 && s.skip != skipExit {
		words = words[1:]
		argv = s.expandFields(argv, words[:1])
	}
	if s.skip == skipExit {
		return argv
	}
	rest := words[1:]
	if len(argv) == 0 {
		return argv
	}
	switch argv[0] {
	// The expanded word decides, so a variable that holds export counts as well.
	case "export", "readonly", "local":
	default:
		return s.expandFields(argv, rest)
	}
	for _, w := range rest {
		name, value := assignment(w)
		if name == "" {
			argv = s.expandFields(argv, []*syntax.Word{w})
		} else {
			argv = append(argv, name+"="+s.expandAssign(value))
		}
		if s.skip == skipExit {
			break
		}
	}
	return argv
}

// assignment splits a word of the form name=value; the name is empty if it is
// none, or if it is quoted. The word is nil for name=, which expandAssign takes for the empty
// string.
func assignment(w *syntax.Word) (string, *syntax.Word) {
	// A name that is quoted or expanded is an argument, as it is for ash's parser.
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok {
		return "", nil
	}
	name, value, ok := strings.Cut(lit.Value, "=")
	if !ok || !script.ValidName(name) {
		return "", nil
	}
	parts := w.Parts[1:]
	if value != "" {
		// The tree is shared by all who run the script, so the literal is copied.
		l := *lit
		l.Value = value
		parts = append([]syntax.WordPart{&l}, parts...)
	}
	if len(parts) == 0 {
		return name, nil
	}
	return name, &syntax.Word{Parts: parts}
}

// simple runs a simple command, in ash's order: words, redirections,
// assignments, command. A redirection that fails is the command's failure, and
// the end of the shell if that is a special builtin.
//
// The order shows: in "x=$(a) b >$(c)" the command substitution a runs last, and if c's file
// can't be opened x is not assigned.
func (s *shell) simple(st *syntax.Stmt, call *syntax.CallExpr, flags evalFlags) int {
	// The parser counts from 1, and ash's sh -c from 0, see firstLine.
	s.line = int(st.Pos().Line()) - 1 + s.in.firstLine(s)
	var argv []string
	// Without a command substitution the status of mere assignments is 0.
	s.substStatus = 0
	if call != nil && len(call.Args) > 0 {
		argv = s.arguments(call.Args)
		if s.skip == skipExit {
			return s.status
		}
	}
	if len(argv) > 0 && s.alias != nil {
		if text, ok := s.aliased(call, argv); ok {
			return s.runAlias(text, argv, st.Redirs)
		}
	}
	saved := redirection{s: s}
	if len(st.Redirs) > 0 {
		if status := saved.do(st.Redirs, true); status != 0 || s.skip == skipExit {
			// Redirections that worked before the one that failed are undone, too.
			saved.restore()
			if s.skip != skipExit && len(argv) > 0 {
				// POSIX 2.8.1, Consequences of Shell Errors, has it so for special builtins only.
				if b, _ := builtinOf(argv[0]); b.special {
					s.exit(status)
				}
			}
			return status
		}
	}
	// set -x goes where stderr led before the command's own redirections.
	s.traceTo = nil
	if s.opts.xtrace {
		// The saved copy of descriptor 2 is where stderr led before the command.
		for _, f := range saved.saved {
			if f.fd == 2 {
				s.traceTo = f.file
			}
		}
	}
	status := s.dispatch(call, argv, flags, &saved)
	saved.restore()
	// Descriptors of <(...) live as long as the command.
	if len(s.procFDs) > 0 {
		s.closeProcFDs()
	}
	return status
}

// dispatch runs what the first word names: a special builtin, a function, a
// builtin or a program, in the order of POSIX. Without a word only the
// assignments and redirections count, and the status is the last command
// substitution's.
//
// saved are the command's redirections, which have been done. Only exec and a program that takes
// the shell's place must know them: they make them stay.
func (s *shell) dispatch(call *syntax.CallExpr, argv []string, flags evalFlags, saved *redirection) int {
	if len(argv) == 0 {
		// Without a command the variables keep the flags that they had.
		if call != nil && !s.assign(call.Assigns, 0, nil) {
			return s.status
		}
		if len(s.traced) > 0 {
			s.trace(nil)
		}
		return s.substStatus
	}
	b, isBuiltin := builtinOf(argv[0])
	// POSIX: assignments before a special builtin stay.
	if b.special {
		if !s.assign(call.Assigns, 0, nil) {
			return s.status
		}
		s.trace(argv)
		// The redirections of exec stay, so it needs what would undo them. runBuiltin has no
		// redirections to hand over.
		if argv[0] == "exec" {
			return execCmd(s, argv, saved)
		}
		return s.runBuiltin(b, argv, flags)
	}
	// A function hides a plain builtin, but no special one, as POSIX orders them.
	f := s.funcs[argv[0]]
	if !isBuiltin && f == nil {
		return s.program(call, argv, flags, saved)
	}
	// Before a function or a plain builtin assignments are exported and last as long as
	// it.
	var temp []variable
	if len(call.Assigns) > 0 && !s.assign(call.Assigns, flagExport, &temp) {
		return s.status
	}
	s.trace(argv)
	status := 0
	if f != nil {
		status = s.callFunction(f, argv, flags)
	} else {
		status = s.runBuiltin(b, argv, flags)
	}
	// In the reverse order, since a name may stand there twice.
	for i := len(temp) - 1; i >= 0; i-- {
		s.vars.giveBack(temp[i])
	}
	return status
}

// assign does the assignments before a command. With saved they are undone
// later; what they were is added to it, in order, since a name may stand there
// twice.
//
// Values are expanded one after the other, so in "a=1 b=$a" b is 1. It returns false after an
// exit, as for a read-only variable.
func (s *shell) assign(list []*syntax.Assign, flags uint8, saved *[]variable) bool {
	for _, a := range list {
		if a.Name == nil {
			continue
		}
		value := s.expandAssign(a.Value)
		if s.skip == skipExit {
			return false
		}
		name := a.Name.Value
		// += is of Bash, from which ash took it.
		if a.Append {
			value = s.vars.value(name) + value
		}
		if saved != nil {
			*saved = append(*saved, s.vars.save(name))
		}
		if !s.setVar(name, value, flags) {
			return false
		}
		// Kept for trace, which shows them in front of the command.
		if s.opts.xtrace {
			s.traced = append(s.traced, name+"="+maybeQuote(value))
		}
	}
	return true
}

// trace shows a command, as set -x asks for, quoted so that it could be typed
// again. PS4 is shown as it is: expansions in it are not done. An error of writing is ignored.
func (s *shell) trace(argv []string) {
	if !s.opts.xtrace {
		return
	}
	// Assignments are shown with the command that they are for.
	words := s.traced
	s.traced = nil
	defer func() { s.traceTo = nil }()
	for _, a := range argv {
		words = append(words, maybeQuote(a))
	}
	ps4 := s.vars.value("PS4")
	line := []byte(ps4 + strings.Join(words, " ") + "\n")
	if s.traceTo != nil {
		_, _ = s.traceTo.Write(s.ctx, line)
	} else {
		_ = s.write(2, line)
	}
}

// runBuiltin runs a builtin and writes what it said, in one piece: others see
// the output of a builtin whole or not yet.
//
// A builtin appends to s.out and returns; flush then makes one write of it, so a reader of the
// pipe wakes up once.
func (s *shell) runBuiltin(b builtin, argv []string, flags evalFlags) int {
	s.spend(costBuiltin)
	// Builtins nest: eval runs others. command is the name in messages, raised what is judged
	// below; the outer builtin gets both back.
	command, raised := s.command, s.raised
	s.command, s.raised = argv[0], false
	var status int
	if b.flow != nil {
		// Commands that a builtin runs report errors as if it were not there.
		s.command = command
		status = b.flow(s, argv, flags)
	} else {
		status = b.run(s, argv)
	}
	if len(s.out) > 0 {
		status = s.flush(status)
	}
	// An error of a special builtin ends the shell, after what it wrote is out. A special builtin
	// that merely returns 1, as shift does, has not raised an error.
	if s.raised && b.special && s.skip == skipNone {
		s.exit(status)
	}
	s.command, s.raised = command, raised
	return status
}

// program runs a command that is a file. Assignments before it are only for its
// environment, and gone afterwards. They change the shell's variables just for the start, since
// the environment is made of those.
func (s *shell) program(call *syntax.CallExpr, argv []string, flags evalFlags, saved *redirection) int {
	var temp []variable
	if len(call.Assigns) > 0 && !s.assign(call.Assigns, flagExport, &temp) {
		return s.status
	}
	s.trace(argv)
	// With a trap set the shell must stay, to run it when the program has ended. may and not
	// caught: in ash a trap that was reset still counts.
	status := s.external(argv, flags&evalExit != 0 && !s.traps.may, saved)
	if s.skip != skipExit {
		for i := len(temp) - 1; i >= 0; i-- {
			s.vars.giveBack(temp[i])
		}
	}
	return status
}

// external finds a program and runs it in a child, or in place of the shell if
// nothing is left to do there. Its status is 126 or 127 if it can't be started (see cannotRun),
// else the program's.
func (s *shell) external(argv []string, replace bool, saved *redirection) int {
	name := argv[0]
	path, err := s.find(name)
	if err != nil {
		return s.cannotRun(name, err)
	}
	if replace {
		return s.exec(path, argv, saved)
	}
	// What the shell did so far took place before the program starts.
	s.settle()
	child, err := s.p.Spawn(s.ctx, kernel.Spec{Path: path, Argv: argv, Env: s.vars.environ()})
	if err != nil {
		// What is executable and no program is a script for a shell of its own.
		if errno(err) == linux.ENOEXEC {
			return s.kids.foreground(s.fork(nil, func(c *shell) int { return c.script(path, argv) }))
		}
		// A remembered path that can't be run any more is looked up anew the next time.
		delete(s.programs.at, name)
		return s.cannotRun(name, err)
	}
	return s.kids.foreground(child)
}

// exec replaces the shell by a program. Redirections stay, jobs are forgotten,
// and an error ends the shell, since POSIX has it so for a shell that is not
// interactive.
//
// The program runs on the task that ran the shell, so exec returns only when it has ended. All
// that is still on the Go stack then must do nothing more, which is what gone is for.
func (s *shell) exec(path string, argv []string, saved *redirection) int {
	// Before Exec: the saved copies would be open descriptors of the program.
	saved.drop()
	s.settle()
	env := s.vars.environ()
	s.kids.jobs = nil
	status, err := s.p.Exec(s.ctx, path, argv, env)
	if err == nil {
		// The program has run in the shell's place: redirections stay, and EXIT has no
		// trap.
		s.gone = true
		s.exit(status)
		return status
	}
	if errno(err) == linux.ENOEXEC {
		return s.script(path, argv)
	}
	status = s.cannotRun(argv[0], err)
	s.exit(status)
	return status
}

// pathCache remembers where in PATH programs were found, as hash shows; it is
// forgotten when PATH changes. As in ash, a file that appears earlier in PATH meanwhile is not
// noticed.
type pathCache struct {
	at   map[string]string
	path string
}

// find looks a program up, and remembers where it was.
func (c *pathCache) find(p *kernel.Process, name, pathVar string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	// The command is '', as from "$UNSET": "Permission denied", and still 127, see cannotRun.
	if name == "" {
		return "", linux.EACCES
	}
	if pathVar != c.path {
		c.at, c.path = nil, pathVar
	}
	if file, ok := c.at[name]; ok {
		return file, nil
	}
	file, err := p.LookPath(name, pathVar)
	if err != nil {
		return "", err
	}
	if c.at == nil {
		c.at = make(map[string]string)
	}
	c.at[name] = file
	return file, nil
}

// find looks a program up in PATH.
func (s *shell) find(name string) (string, error) {
	return s.programs.find(s.p, name, s.vars.value("PATH"))
}

// cannotRun says why a program can't be run, in ash's words: 127 if it is not
// there, else 126. Somebody may want to know which programs an image lacks
// (UnknownCommand).
//
// An ExecError says that a file was found and what it needs was not; then the image does not lack
// the command that was named.
func (s *shell) cannotRun(name string, err error) int {
	e := errno(err)
	// A directory can't be run, for which ash says "Permission denied".
	if e == linux.EISDIR {
		err = linux.EACCES
	}
	if e == linux.ENOENT || e == linux.ENOTDIR {
		var ee *kernel.ExecError
		if fn := s.p.Container().Options().UnknownCommand; fn != nil && !strings.Contains(name, "/") && !errors.As(err, &ee) {
			fn(name)
		}
	}
	s.spend(costSearch)
	s.message("%s: %s", name, explain(err, "not found"))
	switch e {
	case linux.ENOENT, linux.ENOTDIR, linux.ELOOP, linux.ENAMETOOLONG:
		return 127
	}
	if name == "" {
		return 127
	}
	return 126
}

// script runs a file that is no program as a script, as execvp(3)'s callers do:
// with nothing of the shell but its environment. It returns the status and leaves skip to the
// caller: a child's body, or exec.
func (s *shell) script(path string, argv []string) int {
	data, err := s.p.View().ReadFile(path)
	if err != nil {
		return s.cannotRun(argv[0], err)
	}
	// $0 is the path where it was found, as in ash, which runs itself with it.
	s.arg0, s.args, s.command = path, argv[1:], path
	// A script run by exec starts as a new shell would, in the same process.
	s.funcs, s.alias, s.shared = nil, nil, false
	s.opts = options{}
	s.traps = traps{}
	// $$ is that of the process, as in any new shell.
	s.rootPID = s.p.PID()
	status := s.run(s.in.cache.Get(string(data)), 0)
	if s.skip == skipReturn {
		s.skip = skipNone
	}
	return status
}

// aliased returns the text of an alias if the command's name, written without
// quotes, is one. Within an alias none is expanded, so that ls='ls -l' ends. 'ls' and \ls are how
// a script avoids an alias.
func (s *shell) aliased(call *syntax.CallExpr, argv []string) (string, bool) {
	if call == nil || s.aliases > 0 {
		return "", false
	}
	if lit, ok := call.Args[0].Parts[0].(*syntax.Lit); !ok || lit.Value != argv[0] {
		return "", false
	}
	text, ok := s.alias[argv[0]]
	return text, ok
}

// runAlias runs an alias's text with the arguments behind it. Aliases are
// expanded when the command runs, where ash expands them when it reads: a line
// that defines one and uses it can tell. Assignments before it are lost.
func (s *shell) runAlias(text string, argv []string, redirs []*syntax.Redirect) int {
	// The arguments have been expanded, so they are quoted against a second time.
	for _, a := range argv[1:] {
		text += " " + singleQuote(a)
	}
	saved := redirection{s: s}
	status := saved.do(redirs, true)
	if status == 0 {
		s.aliases++
		status = s.runString(text, 0)
		s.aliases--
	}
	saved.restore()
	return status
}
