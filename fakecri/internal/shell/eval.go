package shell

import (
	"fmt"

	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/pattern"
	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/script"
	"mvdan.cc/sh/v3/syntax"
)

// evalFlags tell a command about its place.
//
// They are handed down and get fewer on the way: a command that is not the last of its list loses
// evalExit, while evalTested stays for everything below a condition.
type evalFlags uint8

const (
	// evalExit says that the process has nothing to do after the command, so
	// that a program may take its place.
	evalExit evalFlags = 1 << iota
	// evalTested says that somebody looks at the status, so that set -e must
	// not.
	evalTested
)

// run runs a parsed script. A syntax error in it ends the shell, after the
// lines before it have run: ash reads and runs a line at a time. Every text passes here: the
// command line's, those of eval, traps and aliases, and files.
func (s *shell) run(p *script.Program, flags evalFlags) int {
	// After a newline ash reads on before it runs, so it can't be replaced.
	if !p.Tail || p.Err != "" {
		flags &^= evalExit
	}
	status := s.stmts(p.Stmts, flags)
	if p.Err != "" && s.skip == skipNone {
		// The message names the line of the error, not that of the last command. ErrLine counts
		// from 1 like the parser; the script's first line may be line 0.
		s.line = p.ErrLine - 1 + s.in.firstLine(s)
		if p.Unsupported != "" {
			s.warn("a construct that ash does not have: %s", p.Unsupported)
		}
		return s.fail(2, "%s", p.Err)
	}
	return status
}

// firstLine is the number of a script's first line: ash counts that of sh -c
// from 0, which its messages show.
func (*interp) firstLine(s *shell) int {
	if s.input != nil || !s.opts.fromC {
		return 1
	}
	return 0
}

// stmts runs commands one after the other; the last one has the flags of all,
// as its status is theirs. What it returns is s.status, for callers that have no other use for
// it.
func (s *shell) stmts(list []*syntax.Stmt, flags evalFlags) int {
	if len(list) == 0 {
		// An empty script resets $?.
		s.status = 0
		return 0
	}
	for i, st := range list {
		f := flags
		// Only the last one may take the shell's place.
		if i < len(list)-1 {
			f &= evalTested
		}
		s.stmt(st, f)
		if s.skip != skipNone {
			break
		}
	}
	return s.status
}

// stmt runs one command and then the traps of the signals that came. It is
// where set -e is judged, and where $? is set.
//
// The order is that of ash's evaltree: the command, then $?, then traps, then set -e. A trap's
// action sees the command's status.
func (s *shell) stmt(st *syntax.Stmt, flags evalFlags) int {
	// set -n is for good: the command that could undo it is not run.
	if s.skip != skipNone || s.opts.noexec {
		return s.status
	}
	// A real shell's stack would end; this one is the simulation's.
	if s.depth++; s.depth > maxDepth {
		s.depth = 0
		s.warn("commands nested deeper than %d", maxDepth)
		s.fail(2, "commands nested too deep")
		return 2
	}
	s.spend(costOther)
	status, check := 0, false
	switch {
	case st.Background:
		status, check = s.background(st), true
	// ! hides the status from set -e. evalTested is for the command itself; the status turned
	// round is not judged either.
	case st.Negated:
		if status = s.command1(st, evalTested); s.skip == skipNone {
			status = exitStatus(status != 0)
		}
	default:
		status = s.command1(st, flags)
		switch x := st.Cmd.(type) {
		case *syntax.CallExpr, *syntax.Subshell, *syntax.DeclClause, *syntax.TestClause, *syntax.LetClause, nil:
			// set -e judges simple commands, subshells and pipelines; of
			// compound ones it has judged what is in them.
			check = true
		case *syntax.BinaryCmd:
			check = x.Op == syntax.Pipe
		}
	}
	s.depth--
	if s.skip == skipExit {
		return s.status
	}
	s.status = status
	// Traps run between two commands, not in the middle of one.
	if s.traps.caught {
		s.dotrap()
	}
	// set -e acts after the traps, which see the status as well.
	if check && status != 0 && s.opts.errexit && flags&evalTested == 0 && s.skip == skipNone {
		s.exit(status)
	}
	return s.status
}

// command1 runs a command with its redirections; negation is the caller's. A
// compound command can't take the shell's place, as its redirections are undone
// after it.
//
// Simple commands and subshells do their redirections themselves: the one since their order among
// words and assignments shows, the other since they belong to the child.
func (s *shell) command1(st *syntax.Stmt, flags evalFlags) int {
	switch x := st.Cmd.(type) {
	// A command may consist of redirections alone.
	case nil:
		return s.simple(st, nil, flags)
	case *syntax.CallExpr:
		return s.simple(st, x, flags)
	case *syntax.Subshell:
		return s.subshellCmd(x, st.Redirs, flags)
	case *syntax.DeclClause:
		return s.simple(st, declCall(x), flags)
	}
	if len(st.Redirs) == 0 {
		return s.compound(st.Cmd, flags)
	}
	s.line = int(st.Pos().Line()) - 1 + s.in.firstLine(s)
	// A compound command has its redirections as a whole.
	saved := redirection{s: s}
	status := saved.do(st.Redirs, true)
	if status == 0 && s.skip == skipNone {
		status = s.compound(st.Cmd, flags&evalTested)
	}
	saved.restore()
	return status
}

// compound runs a compound command whose redirections are done. What the parser
// knows and ash does not has been refused by package script; what is left over
// is told of and ends the shell. 127 is the status of a command that does not exist.
func (s *shell) compound(cmd syntax.Command, flags evalFlags) int {
	switch x := cmd.(type) {
	case *syntax.BinaryCmd:
		return s.binaryCmd(x, flags)
	case *syntax.Block:
		return s.stmts(x.Stmts, flags)
	case *syntax.IfClause:
		return s.ifClause(x, flags)
	case *syntax.WhileClause:
		return s.whileClause(x, flags)
	case *syntax.ForClause:
		return s.forClause(x, flags)
	case *syntax.CaseClause:
		return s.caseClause(x, flags)
	case *syntax.FuncDecl:
		return s.define(x)
	case *syntax.TestClause:
		return s.testClause(x)
	case *syntax.LetClause:
		return s.letClause(x)
	case *syntax.TimeClause:
		return s.timeClause(x)
	}
	s.warn("unsupported command %T", cmd)
	return s.fail(127, "unsupported construct %s", fmt.Sprintf("%T", cmd)[len("*syntax."):])
}

// binaryCmd is a | b, a && b and a || b. set -e does not look at the left side. Chains nest to
// the left, so a && b || c is (a && b) || c: POSIX gives both the same precedence.
func (s *shell) binaryCmd(x *syntax.BinaryCmd, flags evalFlags) int {
	if x.Op == syntax.Pipe {
		return s.pipeline(x, flags)
	}
	status := s.stmt(x.X, evalTested)
	// The right side runs after the success of && or the failure of ||.
	if s.skip != skipNone || (status == 0) == (x.Op == syntax.OrStmt) {
		return status
	}
	return s.stmt(x.Y, flags)
}

// ifClause runs if with its elifs; the status is 0 if no branch was taken.
func (s *shell) ifClause(x *syntax.IfClause, flags evalFlags) int {
	for ; x != nil; x = x.Else {
		// An else has no condition.
		if len(x.Cond) == 0 {
			return s.stmts(x.Then, flags)
		}
		// A condition's status is looked at, so set -e leaves it alone.
		status := s.stmts(x.Cond, evalTested)
		if s.skip != skipNone {
			return status
		}
		if status == 0 {
			return s.stmts(x.Then, flags)
		}
	}
	return 0
}

// looped reports whether a loop ends with what its last lap did: break and
// continue count down the loops that they are for, all else goes through.
//
// A loop calls it once after each lap. If it returns true the loop returns, and skip still says
// what is left: an outer loop's count, a return or an exit.
func (s *shell) looped() bool {
	switch s.skip {
	case skipNone:
		return false
	case skipBreak, skipContinue:
		// Outer loops get the rest of the count.
		if s.skipCount--; s.skipCount <= 0 {
			stop := s.skip == skipBreak
			s.skip = skipNone
			return stop
		}
	}
	return true
}

// whileClause runs while and until. A loop that does nothing but sleep is
// parked, see idle. The condition belongs to the loop: a break in it ends this loop, not an outer
// one.
func (s *shell) whileClause(x *syntax.WhileClause, flags evalFlags) int {
	// A loop's body can't take the shell's place, since another lap may follow.
	flags &= evalTested
	s.loops++
	status := 0
	// Decided once, before the first lap. What a lap could change about it is in its body, and a
	// body with more in it than a sleep is not parked.
	rest := idle{s: s, argv: idleLoop(s, x)}
	for {
		// A parked loop comes back when a signal has come, so traps may be due.
		if rest.argv != nil && rest.lap() {
			status = 0
			s.status = 0
			if s.traps.caught {
				s.dotrap()
			}
			if s.looped() {
				break
			}
			continue
		}
		c := s.stmts(x.Cond, evalTested)
		if s.skip != skipNone {
			if s.looped() {
				break
			}
			continue
		}
		// until ends on success, while on failure.
		if (c == 0) == x.Until {
			break
		}
		status = s.stmts(x.Do, flags)
		if s.looped() {
			break
		}
	}
	s.loops--
	return status
}

// forClause runs for over words, or over the arguments without in. The C-like
// for of Bash is refused.
func (s *shell) forClause(x *syntax.ForClause, flags evalFlags) int {
	w, ok := x.Loop.(*syntax.WordIter)
	if !ok {
		s.warn("unsupported loop %T", x.Loop)
		return s.fail(2, "syntax error: bad for loop variable")
	}
	s.line = int(x.ForPos.Line()) - 1 + s.in.firstLine(s)
	var items []string
	// "for x in" with nothing after it is valid, has no items, and makes no lap.
	if w.InPos.IsValid() {
		items = s.expandFields(nil, w.Items)
	} else {
		// The arguments are copied, so that set and shift in the body change nothing.
		items = append(items, s.args...)
	}
	if s.skip == skipExit {
		return s.status
	}
	flags &= evalTested
	s.loops++
	status := 0
	for _, it := range items {
		if !s.setVar(w.Name.Value, it, 0) {
			break
		}
		// Each lap costs time, so that a loop over many words gives way.
		s.spend(costOther)
		status = s.stmts(x.Do, flags)
		if s.looped() {
			break
		}
	}
	s.loops--
	return status
}

// caseClause runs the first branch that a pattern picks. Patterns are expanded
// one by one, as their expansions may have effects.
//
// The status is that of the branch, 0 if there is none; patterns after the one that matched are
// not expanded.
func (s *shell) caseClause(x *syntax.CaseClause, flags evalFlags) int {
	s.line = int(x.Case.Line()) - 1 + s.in.firstLine(s)
	word := s.expandString(x.Word)
	if s.skip == skipExit {
		return s.status
	}
	for _, item := range x.Items {
		for _, p := range item.Patterns {
			want := s.expandPattern(p)
			if s.skip == skipExit {
				return s.status
			}
			// word comes without escapes, as text; want keeps them, as a pattern.
			if pattern.Match(want, word) {
				return s.stmts(item.Stmts, flags)
			}
		}
	}
	return 0
}

// define makes a function. It may hide a builtin that is not special. The body includes the
// redirections of the definition, which are done anew at each call.
func (s *shell) define(x *syntax.FuncDecl) int {
	if x.Name == nil {
		return s.fail(2, "syntax error: bad function name")
	}
	// A subshell's function is none of its parent's.
	s.own()
	if s.funcs == nil {
		s.funcs = make(map[string]*function)
	}
	s.funcs[x.Name.Value] = &function{body: x.Body}
	return 0
}

// callFunction runs a function with parameters and variables of its own. It
// runs in this shell, so all else that it changes stays. A return ends here. A break goes through
// to the loop around the call, as in ash.
func (s *shell) callFunction(f *function, argv []string, flags evalFlags) int {
	// A function has arguments of its own, and getopts starts over in them.
	args, opt := s.args, s.optPos
	s.args, s.optPos = argv[1:], 0
	s.frames = append(s.frames, &frame{})
	s.calls++
	// Called in a condition, a function has set -e off in all of its body.
	status := s.stmt(f.body, flags&evalTested)
	s.calls--
	s.popFrame()
	s.args, s.optPos = args, opt
	if s.skip == skipReturn {
		s.skip = skipNone
		status = s.status
	}
	return status
}

// popFrame gives back the variables that were local to a function, the last one
// first, as one may have been saved twice.
func (s *shell) popFrame() {
	f := s.frames[len(s.frames)-1]
	s.frames = s.frames[:len(s.frames)-1]
	for i := len(f.saved) - 1; i >= 0; i-- {
		s.vars.giveBack(f.saved[i])
	}
}

// runString runs the text of eval, a trap or an alias. Texts are kept parsed: a
// trap's is run again and again. Errors are reported with lines that count from the text's first
// one.
func (s *shell) runString(text string, flags evalFlags) int {
	p := s.in.cache.Get(text)
	return s.run(p, flags)
}
