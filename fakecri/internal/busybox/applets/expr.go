package applets

import (
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/internal/posix"
)

// Expr is expr: the operators of POSIX, and match, substr, index and length of
// GNU. Numbers have 64 bits, and overflow wraps silently where GNU has more
// digits. Status 1 means that the result is empty or 0, 2 a syntax error.
func Expr() applet.Applet { return applet.New(runExpr, "expr", "EXPRESSION") }

// exprRun is one run of expr: a recursive descent over its operands.
type exprRun struct {
	c    *applet.Call
	args []string
}

func runExpr(c *applet.Call) int {
	// Not getopt: a negative number is an operand. Only a -- in front is dropped.
	args := c.Args
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	e := &exprRun{c: c, args: args}
	if len(args) == 0 {
		e.fail("too few arguments")
	}
	v := e.level(0)
	if len(e.args) > 0 {
		e.fail("syntax error")
	}
	c.Print(v, "\n")
	if n, err := strconv.ParseInt(v, 10, 64); v == "" || err == nil && n == 0 {
		return 1
	}
	return 0
}

// fail ends expr with a message and status 2.
func (e *exprRun) fail(text string) {
	e.c.Errorf("%s", text)
	e.c.Exit(2)
}

// peek returns the next operand, "" if there is none.
func (e *exprRun) peek() string {
	if len(e.args) > 0 {
		return e.args[0]
	}
	return ""
}

// take takes the next operand, which there must be.
func (e *exprRun) take() string {
	if len(e.args) == 0 {
		e.fail("syntax error")
	}
	a := e.args[0]
	e.args = e.args[1:]
	return a
}

// exprLevels are the binary operators, those that bind least first.
// Spaces around each let a search for one find whole words only.
var exprLevels = []string{" | ", " & ", " = == != < <= > >= ", " + - ", " * / % ", " : "}

// level evaluates operators of a level and those that bind tighter, from the
// left. Operands are evaluated even where | and & decide without them: they
// have no effects.
func (e *exprRun) level(n int) string {
	if n == len(exprLevels) {
		return e.primary()
	}
	left := e.level(n + 1)
	// A word with a space in it could match two neighbours of the table.
	for len(e.args) > 0 && e.peek() != "" && !strings.Contains(e.peek(), " ") && strings.Contains(exprLevels[n], " "+e.peek()+" ") {
		op := e.take()
		left = e.apply(op, left, e.level(n+1))
	}
	return left
}

// isNull reports whether a value counts as false: empty or 0, also as 00 or -0.
func isNull(s string) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	return s == "" || err == nil && n == 0
}

// apply evaluates one operator. Only arithmetic needs numbers.
func (e *exprRun) apply(op, a, b string) string {
	switch op {
	case "|":
		if !isNull(a) {
			return a
		}
		return b
	case "&":
		if isNull(a) || isNull(b) {
			return "0"
		}
		return a
	case ":":
		return e.match(a, b)
	case "=", "==", "!=", "<", "<=", ">", ">=":
		return e.compare(op, a, b)
	}
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	if errX != nil || errY != nil {
		e.fail("non-numeric argument")
	}
	switch op {
	case "+":
		x += y
	case "-":
		x -= y
	case "*":
		x *= y
	// Division and remainder, which share the check.
	default:
		if y == 0 {
			e.fail("division by zero")
		}
		if op == "/" {
			x /= y
		} else {
			x %= y
		}
	}
	return strconv.FormatInt(x, 10)
}

// compare compares as numbers if both are, else by bytes.
func (e *exprRun) compare(op, a, b string) string {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	d := strings.Compare(a, b)
	if errX == nil && errY == nil {
		d = applet.Sign(x - y)
		// The difference may have overflowed; this can't.
		if x < y {
			d = -1
		} else if x > y {
			d = 1
		}
	}
	ok := false
	switch op {
	case "=", "==":
		ok = d == 0
	case "!=":
		ok = d != 0
	case "<":
		ok = d < 0
	case "<=":
		ok = d <= 0
	case ">":
		ok = d > 0
	case ">=":
		ok = d >= 0
	}
	if ok {
		return "1"
	}
	return "0"
}

// match is STRING : REGEX, anchored at the beginning: the length of the match,
// or what the first group has matched; 0 or empty if there is none. The
// anchoring group that is put around makes the first group the second.
func (e *exprRun) match(s, pattern string) string {
	re, err := posix.Compile(pattern, 0)
	if err != nil {
		e.fail("bad regex '" + pattern + "': " + err.Error())
	}
	anchored, err := posix.Compile(`\`+"`"+`\(`+pattern+`\)`, 0)
	groups := re.Groups()
	// A pattern that can't be wrapped is searched as it is, and a match elsewhere
	// refused.
	if err != nil {
		anchored = re
	}
	loc := anchored.Find(s)
	if loc == nil || loc[0] != 0 {
		if groups > 0 {
			return ""
		}
		return "0"
	}
	if groups > 0 {
		// Places 2 and 3 are the wrapper's group, 4 and 5 the pattern's first.
		if len(loc) < 6 || loc[4] < 0 {
			return ""
		}
		return s[loc[4]:loc[5]]
	}
	return strconv.Itoa(loc[1] - loc[0])
}

// primary is an operand, an expression in brackets, or one of GNU's functions.
// After + any word is an operand, as GNU has it for words that look like
// operators.
func (e *exprRun) primary() string {
	switch a := e.take(); a {
	case "(":
		v := e.level(0)
		if e.take() != ")" {
			e.fail("syntax error")
		}
		return v
	case "quote":
		return e.take()
	case "match":
		s := e.primary()
		return e.match(s, e.primary())
	// Lengths are in bytes, and so are positions, which count from 1.
	case "length":
		return strconv.Itoa(len(e.primary()))
	case "index":
		s := e.primary()
		return strconv.Itoa(strings.IndexAny(s, e.primary()) + 1)
	case "substr":
		s := e.primary()
		from, err1 := strconv.Atoi(e.primary())
		n, err2 := strconv.Atoi(e.primary())
		// As GNU has it, a position or length that makes no sense gives an empty string.
		if err1 != nil || err2 != nil || from < 1 || n < 1 || from > len(s) {
			return ""
		}
		return s[from-1 : min(len(s), from-1+n)]
	case ")", "+", "*", "/", "%", "|", "&", "=", ":":
		if a == "+" && len(e.args) > 0 {
			return e.take()
		}
		e.fail("syntax error")
	default:
		return a
	}
	return ""
}
