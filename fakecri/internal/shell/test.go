package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/drydock-sim/drydock/fakecri/internal/condition"
	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/pattern"
)

// testCmd is test, [ and [[ as a command. Package condition evaluates it, as it
// does for the applet; only [[ compares by patterns. Statuses are POSIX's: 0 true, 1 false, 2 for
// a wrong expression.
func testCmd(s *shell, argv []string) int {
	t := condition.Test{Process: s.p}
	if argv[0] == "[[" {
		t.Match = pattern.Match
	}
	operands, problem := condition.Operands(argv[0], argv[1:])
	if problem != "" {
		s.plain("%s", problem)
		return 2
	}
	ok := t.Eval(operands)
	if t.Problem != "" {
		s.plain("%s", t.Problem)
		return 2
	}
	return exitStatus(ok)
}

// testClause runs [[ ... ]] of Bash's grammar, which ash takes as the command
// test with patterns. The grammar has parsed && and || and brackets already, so operators in
// values are text.
func (s *shell) testClause(x *syntax.TestClause) int {
	s.line = int(x.Left.Line()) - 1 + s.in.firstLine(s)
	s.spend(costBuiltin)
	t := condition.Test{Process: s.p, Match: pattern.Match}
	ok := testClause{s, &t}.eval(x.X)
	if s.skip == skipExit {
		return s.status
	}
	if t.Problem != "" {
		s.plain("%s", t.Problem)
		return 2
	}
	return exitStatus(ok)
}

// testClause evaluates the tree of a [[ ... ]], whose words are expanded only
// where they count.
type testClause struct {
	s *shell
	t *condition.Test
}

// eval evaluates a node of the tree. What is wrong stays in the test's Problem,
// and counts as false.
func (c testClause) eval(x syntax.TestExpr) bool {
	s, t := c.s, c.t
	unknown := func(problem string) bool {
		if t.Problem == "" {
			// The first problem is the one that is shown.
			t.Problem = problem
		}
		return false
	}
	switch x := x.(type) {
	case *syntax.Word:
		return s.expandString(x) != ""
	case *syntax.ParenTest:
		return c.eval(x.X)
	// Only negation stands before an expression; other operators take a word.
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			return !c.eval(x.X)
		}
		w, ok := x.X.(*syntax.Word)
		if !ok || !condition.IsUnary(x.Op.String()) {
			return unknown(x.Op.String() + ": unknown operand")
		}
		return t.Unary(x.Op.String(), s.expandString(w))
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.AndTest:
			// The right side is only expanded if it counts.
			return c.eval(x.X) && c.eval(x.Y)
		case syntax.OrTest:
			return c.eval(x.X) || c.eval(x.Y)
		}
		l, ok1 := x.X.(*syntax.Word)
		r, ok2 := x.Y.(*syntax.Word)
		if !ok1 || !ok2 {
			return unknown(x.Op.String() + ": unknown operand")
		}
		a := s.expandString(l)
		switch x.Op {
		// A pattern keeps its quoting, so that quoted wildcards are text.
		case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch:
			return t.Binary(a, x.Op.String(), s.expandPattern(r))
		}
		return t.Binary(a, x.Op.String(), s.expandString(r))
	}
	return unknown("unsupported test")
}
