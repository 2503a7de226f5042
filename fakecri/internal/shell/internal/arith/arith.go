// Package arith evaluates the expressions of $((...)) and let, as POSIX and ash do: in 64 bits,
// which wrap, on text in which everything else has been expanded. A variable may hold an
// expression itself. Beyond POSIX it has what ash has: **, ++ and --, the comma, and digits in
// bases up to 64.
//
// It is one file and one pass: a recursive descent that calculates while it reads, a function for
// each level of precedence, from comma at the loosest to unary at the tightest, with the binary
// operators in between read by a table (levels). There is no tree, as the text of most
// expressions differs each time: the shell has put values in for $i.
//
// Each function takes eval. It is false in what && || and ?: leave out, where text is still read,
// for its syntax, and nothing is assigned or divided. Errors end the evaluation at once.
package arith

import (
	"errors"
	"strconv"
)

var (
	// The words are ash's; the shell puts its own name before them.
	errSyntax   = errors.New("arithmetic syntax error")
	errDivide   = errors.New("divide by zero")
	errLoop     = errors.New("expression recursion loop detected")
	errExponent = errors.New("exponent less than 0")
)

// maxDepth bounds how deep expressions, and variables that hold expressions,
// may nest. The depth is that of Go's stack here. ash looks for loops by name instead, with the
// same message.
const maxDepth = 64

// evaluator evaluates expressions as POSIX and ash do: the text, with its
// expansions done, in 64 bits. It reads and calculates at once, as a script's
// expressions are mostly evaluated once.
type evaluator struct {
	// s is the text and i the place in it that is read next.
	s string
	i int
	// depth counts nested assignments and operands, of the variables around this text as well.
	depth int
	vars  Vars
}

// Vars are the variables of expressions. Values are text, as a shell has them: an expression's
// result is assigned in decimal.
type Vars interface {
	// Lookup returns the value of a parameter and whether it is set; unset counts as 0.
	Lookup(name string) (string, bool)
	// Assign fails for a read-only variable.
	Assign(name, value string) error
}

// Eval evaluates an expression. An empty one is 0. Errors are worded as ash's. Assignments that
// were done before an error stay done.
func Eval(text string, v Vars) (int64, error) {
	a := evaluator{s: text, vars: v}
	return a.all()
}

// all reads an expression up to the end of the text. Something behind the expression is an error,
// such as the 2 in "1 2".
func (a *evaluator) all() (int64, error) {
	a.space()
	if a.i == len(a.s) {
		return 0, nil
	}
	v, err := a.comma(true)
	if err != nil {
		return 0, err
	}
	if a.space(); a.i < len(a.s) {
		return 0, errSyntax
	}
	return v, nil
}

// space goes past white space, which may stand between any two symbols.
func (a *evaluator) space() {
	for a.i < len(a.s) {
		switch a.s[a.i] {
		case ' ', '\t', '\n', '\r':
			a.i++
		default:
			return
		}
	}
}

// peek reports whether an operator comes next. That a longer one might begin
// with it is the caller's to think of: see operator.
func (a *evaluator) peek(op string) bool {
	a.space()
	return len(a.s)-a.i >= len(op) && a.s[a.i:a.i+len(op)] == op
}

// got goes past an operator if it comes next.
func (a *evaluator) got(op string) bool {
	if a.peek(op) {
		a.i += len(op)
		return true
	}
	return false
}

// comma and the functions after it are the levels of precedence. eval says
// whether the value counts: the side of && or ?: that is not taken is read, and
// has no effects.
func (a *evaluator) comma(eval bool) (int64, error) {
	for {
		v, err := a.assignment(eval)
		if err != nil || !a.got(",") {
			return v, err
		}
	}
}

// assignOps are the assigning operators, the longest first. That order matters: "<<=" begins with
// what "<" alone would take.
var assignOps = [...]string{"<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "="}

// assignment reads NAME OP= VALUE, or without such an operator what ternary reads. It binds to
// the right, so a=b=1 sets both. Whether there is an assignment is known only after the name, so
// without one the reading goes back to start.
func (a *evaluator) assignment(eval bool) (int64, error) {
	if a.depth++; a.depth > maxDepth {
		return 0, errSyntax
	}
	defer func() { a.depth-- }()
	start := a.i
	if name := a.name(); name != "" {
		a.space()
		for _, op := range assignOps {
			// "==" compares: only the single sign assigns.
			if !a.peek(op) || op == "=" && a.peek("==") {
				continue
			}
			a.i += len(op)
			v, err := a.assignment(eval)
			if err != nil || !eval {
				return v, err
			}
			if op != "=" {
				old, err := a.variable(name)
				if err != nil {
					return 0, err
				}
				// The text of an operator without its = names the operation.
				if v, err = binary(op[:len(op)-1], old, v); err != nil {
					return 0, err
				}
			}
			return v, a.vars.Assign(name, strconv.FormatInt(v, 10))
		}
		a.i = start
	}
	return a.ternary(eval)
}

// ternary is c ? x : y, of which only the side that counts is evaluated.
func (a *evaluator) ternary(eval bool) (int64, error) {
	c, err := a.binary(0, eval)
	if err != nil || !a.got("?") {
		return c, err
	}
	x, err := a.comma(eval && c != 0)
	if err != nil {
		return 0, err
	}
	if !a.got(":") {
		return 0, errSyntax
	}
	y, err := a.assignment(eval && c == 0)
	if c != 0 {
		return x, err
	}
	return y, err
}

// levels are the binary operators by how tightly they bind, the loosest
// first. Within a level longer operators come first. ** is not here, as it binds to the right:
// see power.
var levels = [...][]string{
	{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"},
}

// operator returns the binary operator of a level that comes next, if any. What follows decides:
// "a||b" has no "|", and neither has "1|=b", which is an assignment to no name and so an error.
func (a *evaluator) operator(level int) string {
	a.space()
	for _, op := range levels[level] {
		if !a.peek(op) {
			continue
		}
		var next byte
		if a.i+len(op) < len(a.s) {
			next = a.s[a.i+len(op)]
		}
		switch op {
		case "|", "&":
			if next == op[0] || next == '=' {
				continue
			}
		case "<", ">":
			if next == op[0] {
				continue
			}
		case "*":
			if next == '*' || next == '=' {
				continue
			}
		case "^", "+", "-", "/", "%", "<<", ">>":
			if next == '=' {
				continue
			}
		}
		return op
	}
	return ""
}

// binary reads operators of a level and those that bind tighter. It is called with level 0 for a
// whole expression and by itself for each tighter one. need says whether the right side's value
// counts: for || after a true left side it does not.
func (a *evaluator) binary(level int, eval bool) (int64, error) {
	if level == len(levels) {
		return a.power(eval)
	}
	x, err := a.binary(level+1, eval)
	if err != nil {
		return 0, err
	}
	for {
		op := a.operator(level)
		if op == "" {
			return x, nil
		}
		a.i += len(op)
		need := eval && !(op == "||" && x != 0) && !(op == "&&" && x == 0)
		y, err := a.binary(level+1, need)
		if err != nil {
			return 0, err
		}
		// The right side was only read; what it is worth is known from the left side.
		if !need {
			y = truth(op == "||")
			if !eval {
				x = 0
			} else {
				x = y
			}
			continue
		}
		if x, err = binary(op, x, y); err != nil {
			return 0, err
		}
	}
}

// power is **, which binds to the right.
func (a *evaluator) power(eval bool) (int64, error) {
	x, err := a.unary(eval)
	if err != nil || !a.peek("**") {
		return x, err
	}
	a.i += 2
	if a.depth++; a.depth > maxDepth {
		return 0, errSyntax
	}
	defer func() { a.depth-- }()
	// To the right: 2**3**2 is 2**9.
	y, err := a.power(eval)
	if err != nil || !eval {
		return 0, err
	}
	if y < 0 {
		return 0, errExponent
	}
	// By squaring, so that a huge exponent takes 63 steps at most; the result wraps as C's would.
	r := int64(1)
	for ; y > 0; y >>= 1 {
		if y&1 != 0 {
			r *= x
		}
		x *= x
	}
	return r, nil
}

// unary reads signs, negations, ++ and --, brackets, numbers and names.
func (a *evaluator) unary(eval bool) (int64, error) {
	a.space()
	if a.i == len(a.s) {
		return 0, errSyntax
	}
	if a.depth++; a.depth > maxDepth {
		return 0, errSyntax
	}
	defer func() { a.depth-- }()
	c := a.s[a.i]
	switch {
	// "++" before a name counts it up; before anything else it is two signs, so --1 is 1.
	case a.peek("++"), a.peek("--"):
		start := a.i
		a.i += 2
		if name := a.name(); name != "" {
			v, err := a.step(name, c, eval)
			if c == '+' {
				return v + 1, err
			}
			return v - 1, err
		}
		a.i = start
		// The signs are read one at a time.
		fallthrough
	case c == '-', c == '+', c == '!', c == '~':
		a.i++
		v, err := a.unary(eval)
		switch c {
		case '-':
			v = -v
		case '!':
			v = truth(v == 0)
		case '~':
			v = ^v
		}
		return v, err
	case c == '(':
		a.i++
		v, err := a.comma(eval)
		if err == nil && !a.got(")") {
			err = errSyntax
		}
		return v, err
	}
	if c >= '0' && c <= '9' {
		return a.number()
	}
	name := a.name()
	if name == "" {
		return 0, errSyntax
	}
	if a.peek("++") || a.peek("--") {
		// After the name: what it was before is the value.
		c := a.s[a.i]
		a.i += 2
		return a.step(name, c, eval)
	}
	if !eval {
		return 0, nil
	}
	return a.variable(name)
}

// step counts a variable up or down and returns what it was; without eval it
// only reads on. A variable that is unset counts from 0. For ++x the caller adds the step to what
// it was.
func (a *evaluator) step(name string, c byte, eval bool) (int64, error) {
	if !eval {
		return 0, nil
	}
	v, err := a.variable(name)
	if err != nil {
		return 0, err
	}
	n := v + 1
	if c == '-' {
		n = v - 1
	}
	return v, a.vars.Assign(name, strconv.FormatInt(n, 10))
}

// name takes a variable's name, if one comes next. It is empty, and nothing is read, if something
// else comes next.
func (a *evaluator) name() string {
	a.space()
	i := a.i
	for i < len(a.s) {
		c := a.s[i]
		if c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > a.i && c >= '0' && c <= '9' {
			i++
			continue
		}
		break
	}
	n := a.s[a.i:i]
	a.i = i
	return n
}

// variable evaluates what a variable holds, which may be an expression with
// variables in turn; how deep is bounded, as one may hold itself.
func (a *evaluator) variable(name string) (int64, error) {
	s, _ := a.vars.Lookup(name)
	if s == "" {
		return 0, nil
	}
	// A plain decimal number, as nearly all values are, needs no evaluator; a leading 0 is octal.
	if v, err := strconv.ParseInt(s, 10, 64); err == nil && (s[0] != '0' || s == "0") {
		return v, nil
	}
	// Two less, so that the inner evaluator can still read something before its own bound.
	if a.depth >= maxDepth-2 {
		return 0, errLoop
	}
	sub := evaluator{s: s, depth: a.depth + 1, vars: a.vars}
	return sub.all()
}

// number takes a number: decimal, 0x, 0 for octal, or base#digits. One that is
// too big is the biggest, as strtoull(3) has it. The text ends with the first character that
// can't be of a number, and all of it must be one: 08 and 1a are errors.
func (a *evaluator) number() (int64, error) {
	i := a.i
	for i < len(a.s) && (a.s[i] >= '0' && a.s[i] <= '9' || a.s[i] >= 'a' && a.s[i] <= 'z' || a.s[i] >= 'A' && a.s[i] <= 'Z' || a.s[i] == '_') {
		i++
	}
	t := a.s[a.i:i]
	if i < len(a.s) && a.s[i] == '#' {
		base, err := strconv.Atoi(t)
		if err != nil || base < 2 || base > 64 {
			return 0, errSyntax
		}
		j := i + 1
		var v int64
		for j < len(a.s) {
			d := Digit(a.s[j], base)
			if d < 0 {
				break
			}
			// Overflow wraps, as the rest does.
			v = v*int64(base) + int64(d)
			j++
		}
		if j == i+1 {
			return 0, errSyntax
		}
		a.i = j
		return v, nil
	}
	base, d := 10, t
	if len(t) > 1 && t[0] == '0' {
		base, d = 8, t[1:]
		if len(t) > 2 && (t[1] == 'x' || t[1] == 'X') {
			base, d = 16, t[2:]
		}
	}
	u, err := strconv.ParseUint(d, base, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, errSyntax
	}
	a.i = i
	return int64(u), nil
}

// Digit returns the value of a digit in a base up to 64, or -1. Up to base 36 letters of both
// cases are the same, above it capitals follow the small ones, as in Bash: 10 to 35, 36 to 61,
// then @ and _. The shell's escapes use it as well.
func Digit(c byte, base int) int {
	d := -1
	switch {
	case c >= '0' && c <= '9':
		d = int(c - '0')
	case c >= 'a' && c <= 'z':
		d = int(c-'a') + 10
	case c >= 'A' && c <= 'Z':
		if d = int(c-'A') + 36; base <= 36 {
			d -= 26
		}
	case c == '@':
		d = 62
	case c == '_':
		d = 63
	}
	if d >= base {
		return -1
	}
	return d
}

// truth is what a comparison gives.
func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// binary is one operation in 64 bits. Shifts take the lowest six bits of their
// distance, as processors do. Both sides have been evaluated. && and || come here only if both
// counted.
func binary(op string, x, y int64) (int64, error) {
	switch op {
	case "||":
		return truth(x != 0 || y != 0), nil
	case "&&":
		return truth(x != 0 && y != 0), nil
	case "|":
		return x | y, nil
	case "^":
		return x ^ y, nil
	case "&":
		return x & y, nil
	case "==":
		return truth(x == y), nil
	case "!=":
		return truth(x != y), nil
	case "<=":
		return truth(x <= y), nil
	case ">=":
		return truth(x >= y), nil
	case "<":
		return truth(x < y), nil
	case ">":
		return truth(x > y), nil
	case "<<":
		return x << (uint64(y) & 63), nil
	case ">>":
		return x >> (uint64(y) & 63), nil
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return x * y, nil
	}
	// Division, which processors refuse in two cases.
	if y == 0 {
		return 0, errDivide
	}
	if y == -1 {
		// The lowest number divided by -1 does not fit and would trap on a processor; it wraps
		// here.
		if op == "%" {
			return 0, nil
		}
		return -x, nil
	}
	if op == "%" {
		return x % y, nil
	}
	return x / y, nil
}
