// Package condition is what test, [ and [[ decide by, for the shell and for the
// applet of the same name, as BusyBox 1.35 does.
package condition

import (
	"errors"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/posix"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// maxDepth bounds how deep ! and ( may nest.
const maxDepth = 1000

// Test evaluates one condition for a process.
type Test struct {
	Process *kernel.Process
	// Match compares a text with the pattern on the right side of = and !=, as
	// [[ does. nil compares texts.
	Match func(pattern, text string) bool
	// Problem is the first thing that is wrong with the condition; the command
	// ends with 2 then, whatever the answer is.
	Problem string

	args  []string
	pos   int
	depth int
}

// Operands takes the closing bracket off the arguments of a command called
// name: test has none.
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
// of each plain, and by a grammar for more.
func (t *Test) Eval(operands []string) bool {
	a := operands
	t.args, t.pos = a, 0
	switch len(a) {
	case 0:
		return false
	case 1:
		return a[0] != ""
	case 2:
		if a[0] == "!" {
			return a[1] == ""
		}
	case 3:
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
	if t.Problem == "" && t.pos < len(a) {
		t.fail(a[t.pos] + ": unknown operand")
	}
	return ok
}

// fail notes what is wrong, the first time.
func (t *Test) fail(problem string) bool {
	if t.Problem == "" {
		t.Problem = problem
	}
	return false
}

// peek returns the operand that comes next.
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
		r := t.and()
		ok = ok || r
	}
	return ok
}

func (t *Test) and() bool {
	ok := t.not()
	for t.Problem == "" && (t.peek() == "-a" || t.peek() == "&&") {
		t.pos++
		r := t.not()
		ok = ok && r
	}
	return ok
}

func (t *Test) not() bool {
	if t.depth++; t.depth > maxDepth {
		return t.fail("too many arguments")
	}
	defer func() { t.depth-- }()
	if t.peek() == "!" && t.pos+1 < len(t.args) {
		t.pos++
		return !t.not()
	}
	return t.primary()
}

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
	if IsUnary(a) && left == 1 && t.pos > 0 {
		return t.fail(a + ": argument expected")
	}
	if left == 2 && IsBinary(t.args[t.pos+1]) {
		return t.fail(t.args[t.pos+1] + ": argument expected")
	}
	t.pos++
	return a != ""
}

// IsBinary reports whether op stands between two operands.
func IsBinary(op string) bool {
	switch op {
	case "=", "==", "!=", "<", ">", "=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef":
		return true
	}
	return false
}

// Binary answers a condition of two operands.
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

// equal compares texts, by patterns where the command is [[.
func (t *Test) equal(a, b string) bool {
	if t.Match != nil {
		return t.Match(b, a)
	}
	return a == b
}

// number reads an operand of -eq and the like.
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
