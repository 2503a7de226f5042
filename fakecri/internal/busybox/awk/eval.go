package awk

import (
	"math"
	"strings"
)

// maxCalls bounds the depth of calls. A real awk's stack would end; here the
// message does, before the simulation's own stack grows.
const maxCalls = 1000

// eval evaluates an expression. Operands are evaluated from the left, where C
// leaves that open and busybox with it: a program that depends on it is not
// portable. Each kind of expression is a case; expr names them.
func (in *interp) eval(e *expr) value {
	switch e.op {
	case "num":
		return num(e.num)
	// A constant is a text, even if it looks like a number.
	case "str":
		return str(e.str)
	// A regular expression by itself is a match with $0.
	case "regex":
		return boolean(e.re.Match(in.getRecord()))
	case "var":
		// NF is known when the record has been cut.
		if e.slot == vNF {
			in.splitRecord()
		}
		return in.vars[e.slot].value
	case "local":
		return in.frame[e.slot].value
	case "field":
		return in.field(in.eval(e.a))
	case "index":
		return in.arrayOf(e.a).get(in.subscript(e.args)).value
	case "group":
		if e.a == nil {
			return str(in.subscript(e.args))
		}
		return in.eval(e.a)
	// The right side comes first, so that $(i++) = i is defined here at least.
	case "assign":
		v := in.eval(e.b)
		// str is the operator of += and the like.
		if e.str != "" {
			v = num(in.arith(e.str, in.eval(e.a).float(), v.float(), e))
		}
		in.assign(e.a, v)
		return v
	case "?":
		if in.eval(e.a).truth() {
			return in.eval(e.b)
		}
		return in.eval(e.c)
	case "||":
		return boolean(in.eval(e.a).truth() || in.eval(e.b).truth())
	case "&&":
		return boolean(in.eval(e.a).truth() && in.eval(e.b).truth())
	case "in":
		return boolean(in.arrayOf(e.b).has(in.subscript(e.args)))
	case "~", "!~":
		// The right side may be any expression: its text is compiled when it is used.
		text := in.eval(e.a).text(in.convfmt())
		return boolean(in.regexp(e.b).Match(text) == (e.op == "~"))
	case "<", "<=", "==", "!=", ">=", ">":
		return boolean(in.compare(e))
	case "cat":
		return in.concat(e)
	case "+", "-", "*", "/", "%", "^":
		a := in.eval(e.a).float()
		return num(in.arith(e.op, a, in.eval(e.b).float(), e))
	case "u!":
		return boolean(!in.eval(e.a).truth())
	case "u-":
		return num(-in.eval(e.a).float())
	case "u+":
		return num(in.eval(e.a).float())
	case "pre++", "pre--", "post++", "post--":
		// The value of x++ is a number, also of a text.
		old := in.eval(e.a).float()
		v := old + 1
		if strings.HasSuffix(e.op, "--") {
			v = old - 1
		}
		in.assign(e.a, num(v))
		// The second letter tells pre from post.
		if e.op[1] == 'r' {
			return num(v)
		}
		return num(old)
	case "getline":
		return in.getline(e)
	case "call":
		return in.call(e)
	case "builtin":
		return in.builtin(e)
	}
	fail("internal error: " + e.op)
	return value{}
}

// concat evaluates operands that stand side by side. What comes of it is held,
// so a text that grows in a loop meets the OOM killer. A chain of n operands would otherwise copy
// the beginning n times.
func (in *interp) concat(e *expr) value {
	if e.a.op != "cat" {
		a := in.eval(e.a).text(in.convfmt())
		a += in.eval(e.b).text(in.convfmt())
		in.host.Hold(len(a))
		return str(a)
	}
	// A chain of concatenations is gathered at once.
	var chain []*expr
	for e.op == "cat" {
		chain = append(chain, e.b)
		e = e.a
	}
	var b strings.Builder
	b.WriteString(in.eval(e).text(in.convfmt()))
	for i := len(chain) - 1; i >= 0; i-- {
		b.WriteString(in.eval(chain[i]).text(in.convfmt()))
	}
	in.host.Hold(b.Len())
	return str(b.String())
}

// compare compares as numbers if both sides are, else as text. Each side's kind is that of the
// value, not of the place: see value.numeric.
func (in *interp) compare(e *expr) bool {
	a := in.eval(e.a)
	b := in.eval(e.b)
	c := 0
	if a.numeric() && b.numeric() {
		x, y := a.float(), b.float()
		if x < y {
			c = -1
		} else if x > y {
			c = 1
		}
	} else {
		c = strings.Compare(a.text(in.convfmt()), b.text(in.convfmt()))
	}
	switch e.op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case "==":
		return c == 0
	case "!=":
		return c != 0
	case ">=":
		return c >= 0
	}
	return c > 0
}

// arith is one of the arithmetic operators. Everything is a float64; there are no integers.
func (in *interp) arith(op string, a, b float64, e *expr) float64 {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "/":
		if b == 0 {
			fail("cmd. line:" + itoa(max(e.line, 1)) + ": Division by zero")
		}
		return a / b
	case "%":
		if b == 0 {
			fail("cmd. line:" + itoa(max(e.line, 1)) + ": Division by zero")
		}
		// The result has the sign of the left side, as C's fmod.
		return math.Mod(a, b)
	}
	return math.Pow(a, b)
}

// subscript is the key that a list of subscripts stands for. A key is text: a[1] and a["1"] are
// one element, and a[0.1+0.2] depends on CONVFMT.
func (in *interp) subscript(args []*expr) string {
	// Most subscripts are one expression.
	if len(args) == 1 {
		return in.eval(args[0]).text(in.convfmt())
	}
	parts := make([]string, len(args))
	for i, a := range args {
		parts[i] = in.eval(a).text(in.convfmt())
	}
	return strings.Join(parts, in.vars[vSUBSEP].value.text(in.convfmt()))
}

// cellOf is where a variable is kept: among the globals, or in the call's
// frame. The pointer is good as long as the call's frame is.
func (in *interp) cellOf(e *expr) *cell {
	if e.op == "local" {
		return in.frame[e.slot]
	}
	return &in.vars[e.slot]
}

// arrayOf is a variable as an array. An element or a number is no array.
func (in *interp) arrayOf(e *expr) *array {
	if e.op == "group" && e.a != nil {
		return in.arrayOf(e.a)
	}
	if e.op != "var" && e.op != "local" {
		fail("cmd. line:1: Not an array")
	}
	return in.cellOf(e).arr()
}

// assign assigns to a variable, element or field. The parser has made sure that e can be assigned
// to.
func (in *interp) assign(e *expr, v value) {
	switch e.op {
	case "var":
		in.setVar(e.slot, v)
	case "local":
		in.frame[e.slot].value = v
	case "index":
		in.arrayOf(e.a).get(in.subscript(e.args)).value = v
	case "field":
		in.setField(in.fieldIndex(in.eval(e.a)), v)
	}
}

// setVar assigns to a variable; NF changes the record with it. Other special variables are read
// where they count.
func (in *interp) setVar(slot int, v value) {
	if slot == vNF {
		in.setNF(int(clampInt(v.float())))
		return
	}
	in.vars[slot].value = v
}

// call calls a function. Arrays are handed over as such, scalars are copied; an
// unset variable is either, and becomes what the function makes of it. Missing arguments are
// unset, which is how awk programs have local variables.
func (in *interp) call(e *expr) value {
	if in.depth++; in.depth > maxCalls {
		fail("cmd. line:" + itoa(e.line) + ": call nesting too deep")
	}
	f := e.fn
	// Arguments beyond the parameters are evaluated for their effects.
	frame := make([]*cell, max(len(f.params), len(e.args)))
	for i := range frame {
		c := &cell{}
		if i < len(e.args) {
			a := e.args[i]
			if a.op == "var" || a.op == "local" {
				// May turn out to be an array.
				from := in.cellOf(a)
				c.alias = from
				c.array = from.array
				c.value = in.eval(a)
			} else {
				c.value = in.eval(a)
			}
		}
		frame[i] = c
	}
	// The frame is the caller's again afterwards, also its return value.
	saved := in.frame
	in.frame = frame
	// Without a return the value is unset.
	in.ret = value{}
	in.exec2(f.body)
	in.frame = saved
	in.depth--
	v := in.ret
	in.ret = value{}
	return v
}

// exec2 runs a function's body; an exit within it unwinds by a panic, since
// expressions have no flow. A return ends here. A break out of a function has nowhere to go and
// ends here as well.
func (in *interp) exec2(body *stmt) {
	switch f := in.exec(body); f {
	case flowExit, flowNext, flowNextFile:
		panic(unwind(f))
	}
}

// unwind carries an exit or next out of a function. It is panicked, and caught
// by top: an expression's value has no room for a flow.
type unwind flow
