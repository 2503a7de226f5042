// Package condition is what test, [ and [[ decide by, for the shell and for the applet of the
// same name, as BusyBox 1.35 does.
//
// condition.go reads the expression, files.go asks about files. The answer comes with a Problem,
// if something is wrong with the expression: the command then prints that and ends with 2, and
// its answer does not count. Precedence follows coreutils/test.c of BusyBox: -o binds loosest,
// then -a, then !; brackets group.
package condition

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/posix"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// maxDepth bounds how deep ! and ( may nest.
const maxDepth = 1000

// Test evaluates one condition for a process. A Test may be used for one condition after the
// other, as long as none had a problem.
type Test struct {
	Process *kernel.Process
	// Match compares a text with the pattern on the right side of = and !=, as
	// [[ does. nil compares texts.
	Match func(pattern, text string) bool
	// Problem is the first thing that is wrong with the condition; the command
	// ends with 2 then, whatever the answer is.
	Problem string

	// args are the operands, pos the next one, depth how many ! and ( are open.
	args  []string
	pos   int
	depth int
}

// Operands takes the closing bracket off the arguments of a command called
// name: test has none. The names are the command's own, argv[0].
func Operands(name string, args []string) (operands []string, problem string) {
	end := ""
	switch name {
	case "[":
		end = "]"
	case "[[":
		end = "]]"
	default:
		return args, ""
	}
	if n := len(args); n > 0 && args[n-1] == end {
		return args[:n-1], ""
	}
	return nil, "missing " + end
}

// Eval decides as POSIX wants for up to four operands, which make the meaning
// of each plain, and by a grammar for more. POSIX defines the meaning by the number of operands
// so that operands that look like operators are texts: test ! = x compares "!" with "x".
func (t *Test) Eval(operands []string) bool {
	a := operands
	t.args, t.pos = a, 0
	switch len(a) {
	case 0:
		return false
	// A single operand is true if it is not empty, even "-f" or "!".
	case 1:
		return a[0] != ""
	case 2:
		if a[0] == "!" {
			return a[1] == ""
		}
	case 3:
		// A binary operator in the middle wins over anything else.
		if IsBinary(a[1]) && !(a[0] == "(" && a[2] == ")") {
			return t.Binary(a[0], a[1], a[2])
		}
		switch {
		case a[1] == "-a":
			return a[0] != "" && a[2] != ""
		case a[1] == "-o":
			return a[0] != "" || a[2] != ""
		}
	case 4:
		if a[0] == "!" && IsBinary(a[2]) {
			return !t.Binary(a[1], a[2], a[3])
		}
	}
	ok := t.or()
	// Something is left that fits nowhere.
	if t.Problem == "" && t.pos < len(a) {
		t.fail(a[t.pos] + ": unknown operand")
	}
	return ok
}

// fail notes what is wrong, the first time. It returns false, so that a caller can return its
// answer.
func (t *Test) fail(problem string) bool {
	t.Problem = cmp.Or(t.Problem, problem)
	return false
}

// peek returns the operand that comes next. Empty at the end; an empty operand looks alike, and
// is no operator.
func (t *Test) peek() string {
	if t.pos < len(t.args) {
		return t.args[t.pos]
	}
	return ""
}

// or, and, not and primary are the levels of precedence, from the loosest.
func (t *Test) or() bool {
	ok := t.and()
	for t.Problem == "" && (t.peek() == "-o" || t.peek() == "||") {
		t.pos++
		// Both sides are read even if the first decides: the second may have a problem.
		r := t.and()
		ok = ok || r
	}
	return ok
}

// and reads what -a or && joins.
func (t *Test) and() bool {
	ok := t.not()
	for t.Problem == "" && (t.peek() == "-a" || t.peek() == "&&") {
		t.pos++
		r := t.not()
		ok = ok && r
	}
	return ok
}

// not reads any number of !, each of which is one level of depth.
func (t *Test) not() bool {
	if t.depth++; t.depth > maxDepth {
		return t.fail("too many arguments")
	}
	defer func() { t.depth-- }()
	// A ! at the end is text.
	if t.peek() == "!" && t.pos+1 < len(t.args) {
		t.pos++
		return !t.not()
	}
	return t.primary()
}

// primary reads one condition: of two operands, in brackets, of one, or a text that must not be
// empty. Two operands come first, so that in "( = x" the bracket is text.
func (t *Test) primary() bool {
	if t.pos >= len(t.args) {
		return t.fail("argument expected")
	}
	a := t.args[t.pos]
	left := len(t.args) - t.pos
	if left >= 3 && IsBinary(t.args[t.pos+1]) {
		t.pos += 3
		return t.Binary(a, t.args[t.pos-2], t.args[t.pos-1])
	}
	if a == "(" && left > 1 {
		t.pos++
		ok := t.or()
		if t.Problem == "" && t.peek() != ")" {
			return t.fail("closing paren expected")
		}
		t.pos++
		return ok
	}
	if IsUnary(a) && left > 1 {
		t.pos += 2
		return t.Unary(a, t.args[t.pos-1])
	}
	// At the beginning a lone operator is text, in the middle it lacks its operand.
	if IsUnary(a) && left == 1 && t.pos > 0 {
		return t.fail(a + ": argument expected")
	}
	if left == 2 && IsBinary(t.args[t.pos+1]) {
		return t.fail(t.args[t.pos+1] + ": argument expected")
	}
	t.pos++
	return a != ""
}

// IsBinary reports whether op stands between two operands. == and =~ are Bash's, < and > compare
// by bytes.
func IsBinary(op string) bool {
	switch op {
	case "=", "==", "!=", "<", ">", "=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef":
		return true
	}
	return false
}

// Binary answers a condition of two operands. What is left for the end are comparisons of
// integers.
func (t *Test) Binary(a, op, b string) bool {
	switch op {
	case "=", "==":
		return t.equal(a, b)
	case "!=":
		return !t.equal(a, b)
	case "<":
		return a < b
	case ">":
		return a > b
	case "=~":
		re, err := posix.Compile(b, posix.Extended)
		if err != nil {
			return t.fail("bad regex '" + b + "': " + err.Error())
		}
		return re.Match(a)
	case "-nt", "-ot", "-ef":
		return t.files(a, op, b)
	}
	x, ok := t.number(a)
	if !ok {
		return false
	}
	y, ok := t.number(b)
	if !ok {
		return false
	}
	switch op {
	case "-eq":
		return x == y
	case "-ne":
		return x != y
	case "-lt":
		return x < y
	case "-le":
		return x <= y
	case "-gt":
		return x > y
	}
	return x >= y
}

// equal compares texts, by patterns where the command is [[. Only the right side can be a
// pattern.
func (t *Test) equal(a, b string) bool {
	if t.Match != nil {
		return t.Match(b, a)
	}
	return a == b
}

// number reads an operand of -eq and the like. White space around it is accepted, as by
// strtoll(3).
func (t *Test) number(a string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(a), 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, t.fail(a + ": out of range")
	}
	if err != nil {
		return 0, t.fail(a + ": bad number")
	}
	return n, true
}
