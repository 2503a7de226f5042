package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/drydock-sim/drydock/fakecri/internal/condition"
)

// testCmd is test, [ and [[ as a command.
func testCmd(s *shell, argv []string) int {
	t := condition.Test{Process: s.p}
	if argv[0] == "[[" {
		t.Match = match
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
	return int(truth(!ok))
}

func (s *shell) testClause(x *syntax.TestClause) int {
	s.line = int(x.Left.Line()) - 1 + s.in.firstLine(s)
	s.spend(costBuiltin)
	t := condition.Test{Process: s.p, Match: match}
	ok := s.clause(&t, x.X)
	if s.skip == skipExit {
		return s.status
	}
	if t.Problem != "" {
		s.plain("%s", t.Problem)
		return 2
	}
	return int(truth(!ok))
}

// clause evaluates the tree of a [[ ... ]].
func (s *shell) clause(t *condition.Test, x syntax.TestExpr) bool {
	unknown := func(problem string) bool {
		if t.Problem == "" {
			t.Problem = problem
		}
		return false
	}
	switch x := x.(type) {
	case *syntax.Word:
		return s.expandString(x) != ""
	case *syntax.ParenTest:
		return s.clause(t, x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			return !s.clause(t, x.X)
		}
		w, ok := x.X.(*syntax.Word)
		if !ok || !condition.IsUnary(x.Op.String()) {
			return unknown(x.Op.String() + ": unknown operand")
		}
		return t.Unary(x.Op.String(), s.expandString(w))
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.AndTest:
			return s.clause(t, x.X) && s.clause(t, x.Y)
		case syntax.OrTest:
			return s.clause(t, x.X) || s.clause(t, x.Y)
		}
		l, ok1 := x.X.(*syntax.Word)
		r, ok2 := x.Y.(*syntax.Word)
		if !ok1 || !ok2 {
			return unknown(x.Op.String() + ": unknown operand")
		}
		a := s.expandString(l)
		switch x.Op {
		case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch:
			return t.Binary(a, x.Op.String(), s.expandPattern(r))
		}
		return t.Binary(a, x.Op.String(), s.expandString(r))
	}
	return unknown("unsupported test")
}
