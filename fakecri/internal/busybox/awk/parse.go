package awk

import "github.com/drydock-sim/drydock/fakecri/internal/posix"

// Program is a parsed program. It is not written to when it runs, so one may
// run many times. Variables are places in an array: globals lists their names,
// index finds them. The zero place of globals is NF's, see specials.
type Program struct {
	begin, end []*stmt
	rules      []*rule
	funcs      map[string]*function
	globals    []string
	index      map[string]int
}

// rule is a pattern with its action; n is its place, where a run remembers
// whether it is in the rule's range. BEGIN and END are lists of their own.
type rule struct {
	pattern, until *expr
	body           *stmt // nil prints
	n              int
}

// function is a function of the program; one that is called before it is
// defined is known by its name only.
type function struct {
	name    string
	params  []string
	body    *stmt
	defined bool
}

// stmt is a statement: op is its keyword, or "{" for a block, "e" for an
// expression. One type for all keeps the tree small to read; which fields count
// depends on op. list is of "{"; cond, body and els of if and loops; init and post of for; exprs,
// redirect and dest of print; v and exprs of for-in; cond of exit, return and "e".
type stmt struct {
	op         string
	list       []*stmt
	init, post *stmt
	cond       *expr
	body, els  *stmt
	exprs      []*expr
	redirect   string
	dest       *expr
	v          *expr // the variable of a for-in, the target of a delete
}

// expr is an expression; op names its kind: a constant, a variable, an operator
// as it is written, u before one with a single operand, pre or post before ++
// and --. a, b and c are operands from the left; args are subscripts, arguments or a list in
// brackets; fn is the called function; re of a constant in slashes.
type expr struct {
	op   string
	a, b *expr
	c    *expr
	args []*expr
	num  float64
	str  string
	re   *posix.Regexp
	slot int // of a variable: its place; of a local one, in the frame
	fn   *function
	line int
}

// parser is a recursive descent over tokens. locals are the parameters of the
// function that is read. It embeds its lexer, whose present token is tok. To look ahead it copies
// lexer, tok and prev and puts them back.
type parser struct {
	lexer
	prog   *Program
	locals map[string]int
	// noIn and noGT keep `in` and `>` from being operators: in the head of a
	// for, and in an unparenthesised print.
	noIn, noGT bool
	depth      int
}

// maxDepth bounds how deep expressions and statements may nest, in parsing and
// so in evaluating. Go's stack would hold more; a real awk's about as much.
const maxDepth = 500

// Parse reads a program. Its errors are *Error. Functions may be called before
// they are defined, so that one is missing is found at the end. The order of errors is that of
// the text.
func Parse(src string) (p *Program, err error) {
	defer recoverError(&err)
	ps := &parser{lexer: lexer{src: src, line: 1, regexOK: true}}
	ps.prog = &Program{funcs: map[string]*function{}, index: map[string]int{}}
	// The special variables come first, so that their places are known.
	for _, name := range specials {
		ps.global(name)
	}
	ps.next()
	ps.program()
	for _, f := range ps.prog.funcs { //drydock:unordered any undefined one is an error of the same text
		if !f.defined {
			fail("cmd. line:" + itoa(ps.line) + ": Call to undefined function")
		}
	}
	return ps.prog, nil
}

// recoverError turns a panic of fail into an error, and leaves all others
// alone: those are mistakes of this package.
func recoverError(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		*err = r
	default:
		panic(r)
	}
}

// global returns a variable's place, which it makes if there is none.
func (p *parser) global(name string) int {
	if i, ok := p.prog.index[name]; ok {
		return i
	}
	i := len(p.prog.globals)
	p.prog.index[name] = i
	p.prog.globals = append(p.prog.globals, name)
	return i
}

// is reports whether the present token is an operator or keyword. Names never are operators, so
// the kind is asked, too.
func (p *parser) is(op string) bool {
	return (p.tok.kind == tOp || p.tok.kind == tKeyword) && p.tok.text == op
}

// take goes past an operator or keyword if it is the present token.
func (p *parser) take(op string) bool {
	if p.is(op) {
		p.next()
		return true
	}
	return false
}

// want is take of what must come.
func (p *parser) want(op string) {
	if !p.take(op) {
		p.unexpected()
	}
}

// unexpected ends parsing at the present token.
func (p *parser) unexpected() {
	fail("cmd. line:" + itoa(p.tok.line) + ": Unexpected token")
}

// skipNewlines goes past newlines where POSIX allows them in the middle of a
// construct. After {, &&, ||, do, else, commas and the bracket of an if.
func (p *parser) skipNewlines() {
	for p.tok.kind == tNewline {
		p.next()
	}
}

// skipTerminators goes past what may stand between two statements.
func (p *parser) skipTerminators() {
	for p.tok.kind == tNewline || p.is(";") {
		p.next()
	}
}

// program reads rules and functions up to the end. A pattern without an action
// prints, an action without a pattern is for every record. Rules keep their order, BEGIN and END
// actions too, however they are mixed.
func (p *parser) program() {
	for p.skipTerminators(); p.tok.kind != tEOF; p.skipTerminators() {
		switch {
		case p.take("BEGIN"):
			p.skipNewlines()
			p.prog.begin = append(p.prog.begin, p.block())
		case p.take("END"):
			p.skipNewlines()
			p.prog.end = append(p.prog.end, p.block())
		case p.take("function"):
			p.function()
		default:
			// Everything else is a rule, with or without a pattern.
			r := &rule{n: len(p.prog.rules)}
			if !p.is("{") {
				r.pattern = p.expr()
				if p.take(",") {
					p.skipNewlines()
					r.until = p.expr()
				}
			}
			if p.is("{") {
				r.body = p.block()
			} else if p.tok.kind != tEOF && p.tok.kind != tNewline && !p.is(";") {
				p.unexpected()
			}
			p.prog.rules = append(p.prog.rules, r)
		}
	}
}

// function reads a function. Its parameters hide variables of the same name
// within its body. All parameters of one function are different, or the later one counts.
func (p *parser) function() {
	if p.tok.kind != tName && p.tok.kind != tFuncName {
		p.unexpected()
	}
	f := p.named(p.tok.text)
	p.next()
	p.want("(")
	p.locals = map[string]int{}
	for !p.is(")") {
		if p.tok.kind != tName {
			p.unexpected()
		}
		p.locals[p.tok.text] = len(f.params)
		f.params = append(f.params, p.tok.text)
		p.next()
		if !p.take(",") {
			break
		}
		p.skipNewlines()
	}
	p.want(")")
	p.skipNewlines()
	f.defined = true
	f.body = p.block()
	p.locals = nil
}

// named returns a function by name, defined or not yet.
func (p *parser) named(name string) *function {
	f := p.prog.funcs[name]
	if f == nil {
		f = &function{name: name}
		p.prog.funcs[name] = f
	}
	return f
}

// block reads statements in braces.
func (p *parser) block() *stmt {
	p.want("{")
	s := &stmt{op: "{"}
	for p.skipTerminators(); !p.is("}"); p.skipTerminators() {
		if p.tok.kind == tEOF {
			p.unexpected()
		}
		s.list = append(s.list, p.stmt())
	}
	p.next()
	return s
}

// nest counts how deep the descent is; the function returned goes back up.
func (p *parser) nest() func() {
	if p.depth++; p.depth > maxDepth {
		fail("too deep")
	}
	return func() { p.depth-- }
}

// stmt reads a statement and its terminator. A lone semicolon is an empty statement.
func (p *parser) stmt() *stmt {
	defer p.nest()()
	if p.is("{") {
		return p.block()
	}
	if p.take(";") {
		return &stmt{op: "{"}
	}
	if p.tok.kind == tKeyword {
		switch kw := p.tok.text; kw {
		case "if", "while", "do", "for":
			p.next()
			return p.compound(kw)
		}
	}
	s := p.simple()
	if p.tok.kind == tNewline || p.is(";") {
		p.next()
	} else if !p.is("}") && p.tok.kind != tEOF {
		p.unexpected()
	}
	return s
}

// compound reads if, while, do and for, whose keyword has been read. An empty body is a block
// without statements.
func (p *parser) compound(kw string) *stmt {
	s := &stmt{op: kw}
	switch kw {
	case "if":
		p.want("(")
		s.cond = p.expr()
		p.want(")")
		p.skipNewlines()
		s.body = p.stmt()
		// else may stand after any number of terminators: look, and come back.
		save, tok, prev := p.lexer, p.tok, p.prev
		p.skipTerminators()
		// "if (x) a; else b" has a terminator before the else, which ends the statement without
		// one.
		if p.take("else") {
			p.skipNewlines()
			s.els = p.stmt()
		} else {
			p.lexer, p.tok, p.prev = save, tok, prev
		}
	case "while":
		p.want("(")
		s.cond = p.expr()
		p.want(")")
		if p.take(";") {
			s.body = &stmt{op: "{"}
			return s
		}
		p.skipNewlines()
		s.body = p.stmt()
	case "do":
		p.skipNewlines()
		s.body = p.stmt()
		p.skipTerminators()
		p.want("while")
		p.want("(")
		s.cond = p.expr()
		p.want(")")
	case "for":
		p.forHead(s)
		if p.take(";") {
			s.body = &stmt{op: "{"}
			return s
		}
		p.skipNewlines()
		s.body = p.stmt()
	}
	return s
}

// forHead reads what is in the brackets of a for: (k in a), or three parts. The
// first is tried, and given up if it does not fit.
func (p *parser) forHead(s *stmt) {
	p.want("(")
	save, tok, prev := p.lexer, p.tok, p.prev
	if p.tok.kind == tName {
		name := p.tok.text
		p.next()
		if p.take("in") && p.tok.kind == tName {
			arr := p.variable(p.tok.text)
			p.next()
			if p.take(")") {
				s.op = "forin"
				s.v = p.variable(name)
				s.exprs = []*expr{arr}
				return
			}
		}
		p.lexer, p.tok, p.prev = save, tok, prev
	}
	if !p.is(";") {
		s.init = p.simple()
	}
	p.want(";")
	p.skipNewlines()
	if !p.is(";") {
		s.cond = p.expr()
	}
	p.want(";")
	p.skipNewlines()
	if !p.is(")") {
		s.post = p.simple()
	}
	p.want(")")
}

// ended reports whether the statement ends here.
func (p *parser) ended() bool {
	return p.tok.kind == tNewline || p.tok.kind == tEOF || p.is(";") || p.is("}")
}

// simple reads a statement without its terminator, as it stands in the head of
// a for, too. break outside of a loop is not found here, and ends the action.
func (p *parser) simple() *stmt {
	if p.tok.kind != tKeyword || p.tok.text == "getline" {
		return &stmt{op: "e", cond: p.expr()}
	}
	s := &stmt{op: p.tok.text}
	p.next()
	switch s.op {
	case "print", "printf":
		p.printArgs(s)
	case "next", "nextfile", "break", "continue":
	case "exit", "return":
		if !p.ended() {
			s.cond = p.expr()
		}
	case "delete":
		s.v = p.primary()
		if s.v.op != "var" && s.v.op != "local" && s.v.op != "index" {
			p.unexpected()
		}
	default:
		p.unexpected()
	}
	return s
}

// printArgs reads what print and printf print, and where to. Outside of
// brackets a > is where to, no comparison. "print a, b > c" has c as its file: what follows > is
// a concatenation at most.
func (p *parser) printArgs(s *stmt) {
	p.noGT = true
	if !p.ended() && !p.is(">") && !p.is(">>") && !p.is("|") {
		e := p.expr()
		// print (a, b) is a list, not one value.
		if e.op == "group" && len(e.args) > 0 {
			s.exprs = e.args
		} else {
			s.exprs = []*expr{e}
			for p.take(",") {
				p.skipNewlines()
				s.exprs = append(s.exprs, p.expr())
			}
		}
	}
	p.noGT = false
	if s.op == "printf" && len(s.exprs) == 0 {
		fail("cmd. line:" + itoa(p.tok.line) + ": Too few arguments")
	}
	if p.is(">") || p.is(">>") || p.is("|") {
		s.redirect = p.tok.text
		p.next()
		p.noGT = true
		s.dest = p.ternary()
		p.noGT = false
	}
}
