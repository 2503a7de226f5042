// Package arith evaluates the expressions of $((...)) and let, as POSIX and ash
// do: in 64 bits, which wrap, on text in which everything else has been expanded.
// A variable may hold an expression itself. Beyond POSIX it has what ash has: **,
// ++ and --, the comma, and digits in bases up to 64.
package arith

import (
	"errors"
	"strconv"
)

var (
	errSyntax   = errors.New("arithmetic syntax error")
	errDivide   = errors.New("divide by zero")
	errLoop     = errors.New("expression recursion loop detected")
	errExponent = errors.New("exponent less than 0")
)

// maxDepth bounds how deep expressions, and variables that hold expressions,
// may nest.
const maxDepth = 64

// evaluator evaluates expressions as POSIX and ash do: the text, with its
// expansions done, in 64 bits. It reads and calculates at once, as a script's
// expressions are mostly evaluated once.
type evaluator struct {
	s     string
	i     int
	depth int
	vars  Vars
}

// Vars are the variables of expressions.
type Vars interface {
	Lookup(name string) (string, bool)
	// Assign fails for a read-only variable.
	Assign(name, value string) error
}

// Eval evaluates an expression. An empty one is 0. Errors are worded as ash's.
func Eval(text string, v Vars) (int64, error) {
	a := evaluator{s: text, vars: v}
	return a.all()
}

// all reads an expression up to the end of the text.
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

// assignOps are the assigning operators, the longest first.
var assignOps = [...]string{"<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "="}

func (a *evaluator) assignment(eval bool) (int64, error) {
	if a.depth++; a.depth > maxDepth {
		return 0, errSyntax
	}
	defer func() { a.depth-- }()
	start := a.i
	if name := a.name(); name != "" {
		a.space()
		for _, op := range assignOps {
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
// first.
var levels = [...][]string{
	{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"},
}

// operator returns the binary operator of a level that comes next, if any.
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

// binary reads operators of a level and those that bind tighter.
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
	y, err := a.power(eval)
	if err != nil || !eval {
		return 0, err
	}
	if y < 0 {
		return 0, errExponent
	}
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
// only reads on.
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

// name takes a variable's name, if one comes next.
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
	if v, err := strconv.ParseInt(s, 10, 64); err == nil && (s[0] != '0' || s == "0") {
		return v, nil
	}
	if a.depth >= maxDepth-2 {
		return 0, errLoop
	}
	sub := evaluator{s: s, depth: a.depth + 1, vars: a.vars}
	return sub.all()
}

// number takes a number: decimal, 0x, 0 for octal, or base#digits. One that is
// too big is the biggest, as strtoull(3) has it.
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

// Digit returns the value of a digit in a base up to 64, or -1.
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
// distance, as processors do.
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
