package awk

import "github.com/drydock-sim/drydock/fakecri/internal/posix"

// expr reads an expression; assignment binds least. Assignment binds to the right.
func (p *parser) expr() *expr {
	defer p.nest()()
	left := p.ternary()
	if p.tok.kind == tOp {
		switch op := p.tok.text; op {
		case "=", "+=", "-=", "*=", "/=", "%=", "^=":
			if !left.assignable() {
				p.unexpected()
			}
			p.next()
			p.skipNewlines()
			// The line is where the expression ends.
			return &expr{op: "assign", str: op[:len(op)-1], a: left, b: p.expr(), line: p.tok.line}
		}
	}
	return left
}

// assignable reports whether an expression is a variable, an element or a
// field.
func (e *expr) assignable() bool {
	return e.op == "var" || e.op == "local" || e.op == "index" || e.op == "field"
}

// ternary and the functions after it are the levels of precedence, each of
// which reads the next tighter one: ?:, ||, &&, in, ~, comparison,
// concatenation, + and -, * / and %, signs and !, ^, ++ and --, and what stands
// by itself. Each binary level is a loop, and so binds to the left.
func (p *parser) ternary() *expr {
	cond := p.or()
	if !p.take("?") {
		return cond
	}
	p.skipNewlines()
	e := &expr{op: "?", a: cond}
	e.b = p.expr()
	p.skipNewlines()
	p.want(":")
	p.skipNewlines()
	e.c = p.expr()
	return e
}

// or reads operands of ||.
func (p *parser) or() *expr {
	left := p.and()
	for p.take("||") {
		// A line may end after the operator.
		p.skipNewlines()
		left = &expr{op: "||", a: left, b: p.and()}
	}
	return left
}

// and reads operands of &&.
func (p *parser) and() *expr {
	left := p.in()
	for p.take("&&") {
		p.skipNewlines()
		left = &expr{op: "&&", a: left, b: p.in()}
	}
	return left
}

// in reads (i,j) in arr: the list that stands in brackets before it is the
// subscript.
func (p *parser) in() *expr {
	left := p.match()
	// The head of for (k in a) has an in of its own.
	for !p.noIn && p.is("in") {
		p.next()
		if p.tok.kind != tName {
			p.unexpected()
		}
		e := &expr{op: "in", b: p.variable(p.tok.text), args: []*expr{left}}
		// A list in brackets is a subscript of several.
		if left.op == "group" && len(left.args) > 0 {
			e.args = left.args
		}
		p.next()
		left = e
	}
	return left
}

// match reads ~ and !~, whose right side may be any expression.
func (p *parser) match() *expr {
	left := p.comparison()
	for p.is("~") || p.is("!~") {
		op := p.tok.text
		p.next()
		left = &expr{op: op, a: left, b: p.comparison()}
	}
	return left
}

// comparison reads < and the like, which do not associate in POSIX and do here,
// as in busybox, and | getline. So 1 < 2 < 3 is (1 < 2) < 3.
func (p *parser) comparison() *expr {
	left := p.concat()
	for p.tok.kind == tOp {
		op := p.tok.text
		switch op {
		case "<", "<=", "==", "!=", ">=":
		case ">":
			// In a print statement > redirects.
			if p.noGT {
				return left
			}
		case "|":
			// cmd | getline binds as loosely as a comparison's operands.
			// The lexer is a value, so a copy is enough to go back to.
			save, tok, prev := p.lexer, p.tok, p.prev
			p.next()
			if !p.is("getline") {
				p.lexer, p.tok, p.prev = save, tok, prev
				return left
			}
			p.next()
			left = &expr{op: "getline", str: "|", b: left, a: p.optionalTarget()}
			continue
		default:
			return left
		}
		p.next()
		left = &expr{op: op, a: left, b: p.concat()}
	}
	return left
}

// beginsOperand reports whether the present token can begin what is
// concatenated, as concatenation has no operator of its own. in and getline are keywords, and so
// begin none.
func (p *parser) beginsOperand() bool {
	switch p.tok.kind {
	case tNumber, tString, tRegex, tName, tFuncName, tBuiltin:
		return true
	case tOp:
		switch p.tok.text {
		case "$", "!", "(", "-", "+", "++", "--":
			return true
		}
	}
	return false
}

// concat reads operands that stand side by side. A + or - there is an operator,
// not a sign. a -1 is a subtraction, a " " -1 a concatenation with a negative number's text in
// gawk and a subtraction here.
func (p *parser) concat() *expr {
	left := p.additive()
	for p.beginsOperand() && !p.is("+") && !p.is("-") {
		left = &expr{op: "cat", a: left, b: p.additive()}
	}
	return left
}

// additive reads + and -.
func (p *parser) additive() *expr {
	left := p.term()
	for p.is("+") || p.is("-") {
		op := p.tok.text
		p.next()
		left = &expr{op: op, a: left, b: p.term()}
	}
	return left
}

// term reads *, / and %.
func (p *parser) term() *expr {
	left := p.unary()
	for p.is("*") || p.is("/") || p.is("%") {
		op := p.tok.text
		p.next()
		left = &expr{op: op, a: left, b: p.unary(), line: p.tok.line}
	}
	return left
}

// unary reads !, - and + in front: they bind looser than ^, so -2^2 is -4.
func (p *parser) unary() *expr {
	defer p.nest()()
	for _, op := range []string{"!", "-", "+"} {
		if p.take(op) {
			return &expr{op: "u" + op, a: p.unary()}
		}
	}
	return p.power()
}

// power is ^, which binds to the right, and tighter than a sign before it.
func (p *parser) power() *expr {
	base := p.postfix()
	if p.take("^") {
		// Right-associative; binds closer than a sign before it. The right side may have a sign:
		// 2^-1.
		return &expr{op: "^", a: base, b: p.unary()}
	}
	return base
}

// postfix reads ++ and -- behind.
func (p *parser) postfix() *expr {
	e := p.primary()
	// Only what can be assigned to takes ++ and --; elsewhere they begin the next
	// operand.
	if e.assignable() && (p.is("++") || p.is("--")) {
		e = &expr{op: "post" + p.tok.text, a: e}
		p.next()
	}
	return e
}

// variable is a parameter or a global variable by its name. A parameter hides a global one.
func (p *parser) variable(name string) *expr {
	if i, ok := p.locals[name]; ok {
		return &expr{op: "local", slot: i, str: name}
	}
	return &expr{op: "var", slot: p.global(name), str: name}
}

// optionalTarget reads the variable of a getline, if there is one. $ binds tightly: getline $1
// sets the first field.
func (p *parser) optionalTarget() *expr {
	if p.tok.kind == tName || p.is("$") {
		e := p.primary()
		if !e.assignable() {
			p.unexpected()
		}
		return e
	}
	return nil
}

// list reads expressions up to a bracket, within which > and in are operators
// again. Newlines may stand after commas and brackets.
func (p *parser) list(end string) []*expr {
	var out []*expr
	noGT, noIn := p.noGT, p.noIn
	p.noGT, p.noIn = false, false
	p.skipNewlines()
	for !p.is(end) {
		out = append(out, p.expr())
		p.skipNewlines()
		if !p.take(",") {
			break
		}
		p.skipNewlines()
	}
	p.noGT, p.noIn = noGT, noIn
	p.want(end)
	return out
}

// primary reads what stands by itself: a constant, a variable, a call, a group,
// a field, getline. It never returns nil: what fits nowhere ends the parsing.
func (p *parser) primary() *expr {
	defer p.nest()()
	t := p.tok
	switch t.kind {
	case tNumber:
		p.next()
		return &expr{op: "num", num: t.num}
	case tString:
		p.next()
		return &expr{op: "str", str: t.text}
	case tRegex:
		p.next()
		return &expr{op: "regex", str: t.text, re: compile(t.text)}
	case tName:
		p.next()
		e := p.variable(t.text)
		if p.take("[") {
			args := p.list("]")
			if len(args) == 0 {
				p.unexpected()
			}
			e = &expr{op: "index", a: e, args: args}
		}
		return e
	case tFuncName:
		p.next()
		p.want("(")
		// Whether such a function exists is asked at the end of Parse.
		return &expr{op: "call", fn: p.named(t.text), args: p.list(")"), line: t.line}
	case tBuiltin:
		p.next()
		e := &expr{op: "builtin", str: t.text, line: t.line}
		if p.take("(") {
			e.args = p.list(")")
			// Only length may stand without brackets.
		} else if t.text != "length" {
			p.unexpected()
		}
		if n := minArgs(t.text); len(e.args) < n {
			fail("cmd. line:" + itoa(t.line) + ": Too few arguments")
		}
		return e
	case tKeyword:
		if t.text == "getline" {
			p.next()
			e := &expr{op: "getline", a: p.optionalTarget()}
			if p.take("<") {
				e.str = "<"
				e.b = p.postfix()
			}
			return e
		}
	case tOp:
		switch t.text {
		case "(":
			p.next()
			args := p.list(")")
			if len(args) == 0 {
				p.unexpected()
			}
			if len(args) > 1 {
				return &expr{op: "group", args: args}
			}
			// A group is kept, since print (a)(b) and (i,j) in arr depend on it.
			return &expr{op: "group", a: args[0]}
		case "$":
			p.next()
			// $++i and $-1 bind the sign to the number, $i++ the increment to
			// the field.
			if p.is("++") || p.is("--") || p.is("-") || p.is("+") || p.is("!") {
				return &expr{op: "field", a: p.unary()}
			}
			return &expr{op: "field", a: p.primary()}
		case "++", "--":
			p.next()
			e := p.primary()
			if !e.assignable() {
				p.unexpected()
			}
			return &expr{op: "pre" + t.text, a: e}
		}
	}
	p.unexpected()
	return nil
}

// compile is an extended regular expression with awk's escapes. The message is the applet's.
func compile(pattern string) *posix.Regexp {
	re, err := posix.Compile(pattern, posix.Extended|posix.Escapes)
	if err != nil {
		fail("bad regex '" + pattern + "': " + err.Error())
	}
	return re
}

// minArgs returns how many arguments a builtin needs at least; too many are
// evaluated or not, and never an error. busybox checks no more.
func minArgs(name string) int {
	switch name {
	case "length", "rand", "srand", "systime", "strftime", "fflush":
		return 0
	case "substr", "index", "split", "sub", "gsub", "match", "atan2", "and", "or", "xor", "lshift", "rshift":
		return 2
	}
	return 1
}
