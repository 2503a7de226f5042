package awk

import (
	"errors"
	"io"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/posix"
)

// specials are the variables with a meaning, at their places among the globals:
// the constants below are these places. The two lists must have one order.
var specials = []string{"NF", "NR", "FNR", "FS", "OFS", "ORS", "RS", "FILENAME", "CONVFMT", "OFMT", "SUBSEP", "RSTART", "RLENGTH", "ARGC", "ARGV", "ENVIRON", "ERRNO"}

const (
	vNF = iota
	vNR
	vFNR
	vFS
	vOFS
	vORS
	vRS
	vFILENAME
	vCONVFMT
	vOFMT
	vSUBSEP
	vRSTART
	vRLENGTH
	vARGC
	vARGV
	vENVIRON
	vERRNO
)

// flow says how a statement ended. The order matters: what is above
// flowContinue leaves a loop and goes on to who has called. exec returns it, and each level acts
// on what is its own, as the shell does with its skips.
type flow uint8

const (
	flowOn flow = iota
	flowBreak
	flowContinue
	flowNext
	flowNextFile
	flowExit
	flowReturn
)

// interp is one run of a program. prog is shared by runs and not written to; all else is this
// run's.
type interp struct {
	prog  *Program
	host  Host
	vars  []cell
	frame []*cell
	depth int

	// record is $0; fields are valid once split says so, and record is not
	// while stale is set. Either is made of the other when somebody looks.
	record string
	fields []value // $1 and on, once split
	split  bool
	stale  bool // the record is to be made of the fields

	// ret is what the last return gave, exit the status to end with, steps what tick has counted.
	ret   value
	exit  int
	steps int
	// regex keeps expressions that were made of strings, a bounded number.
	regex map[string]*posix.Regexp
	// ranges says for each rule whether the record is in its range.
	ranges []bool

	in      *reader // the present input file
	argAt   int
	anyFile bool
	// What redirections have opened, by file or command; the keys in the order
	// of opening, since the end closes them in it.
	outs    map[string]*output
	outKeys []string
	ins     map[string]*input
	inKeys  []string
	// seed is the one of rand; 0 and 1 draw alike.
	seed   uint32
	random *glibcRandom
}

// Config is what the command line says, taken apart; -f and the program's text
// are the caller's. Values of -v and operands get their escapes resolved when they are assigned.
type Config struct {
	// FS is the field separator of -F, with escapes already resolved.
	FS string
	// Vars are the name=value of -v.
	Vars []string
	// Args are the operands: files and assignments.
	Args []string
}

// Run runs a program and returns its exit status. An error is *Error, or what
// the host's writers return. What the program has opened is closed, and its
// commands are waited for, unless an error ended it. After an error what was opened is left to
// the host, which ends with the process.
func Run(prog *Program, cfg Config, host Host) (code int, err error) {
	in := &interp{
		prog: prog, host: host, vars: make([]cell, len(prog.globals)), regex: map[string]*posix.Regexp{},
		outs: map[string]*output{}, ins: map[string]*input{}, ranges: make([]bool, len(prog.rules)), seed: 1,
	}
	defer recoverError(&err)
	in.setup(cfg)
	code, err = in.run()
	in.closeAll()
	return code, err
}

// setup gives the special variables their values. -v comes last, so that it may
// change them. The environment's values look like input: ENVIRON["N"] compares as a number.
func (in *interp) setup(cfg Config) {
	for i, s := range map[int]string{vFS: " ", vOFS: " ", vORS: "\n", vRS: "\n", vCONVFMT: "%.6g", vOFMT: "%.6g", vSUBSEP: "\x1c"} { //drydock:unordered each sets its own
		in.vars[i].value = str(s)
	}
	for _, i := range []int{vNF, vNR, vFNR, vRSTART} {
		in.vars[i].value = num(0)
	}
	in.vars[vRLENGTH].value = num(-1)
	if cfg.FS != "" {
		in.vars[vFS].value = str(cfg.FS)
	}
	args := in.vars[vARGV].arr()
	// ARGV[0] is awk, whatever the program was called by.
	args.get("0").value = inputStr("awk")
	for i, a := range cfg.Args {
		args.get(itoa(i + 1)).value = inputStr(a)
	}
	in.vars[vARGC].value = num(float64(len(cfg.Args) + 1))
	env := in.vars[vENVIRON].arr()
	for _, kv := range in.host.Environ() {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env.get(k).value = inputStr(v)
		}
	}
	for _, v := range cfg.Vars {
		in.assignArg(v)
	}
}

// assignArg makes an assignment of the command line; false if it is none, and
// so a file. Escapes in the value are resolved, as POSIX wants. A name that the program never
// mentions is known to nobody.
func (in *interp) assignArg(arg string) bool {
	name, v, ok := strings.Cut(arg, "=")
	if !ok || name == "" || !isAlpha(name[0]) {
		return false
	}
	for i := 0; i < len(name); i++ {
		if !isAlpha(name[i]) && !isDigit(name[i]) {
			return false
		}
	}
	// A variable that the program does not have needs no value.
	if i, ok := in.prog.index[name]; ok {
		in.setVar(i, inputStr(unescape(v)))
	}
	return true
}

// unescape resolves the C escapes of a string.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if v, n := posix.Unescape(s[i:]); n > 0 {
			b.WriteByte(v)
			i += n
			continue
		}
		if strings.HasPrefix(s[i:], `\\`) {
			i++
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

// Unescape resolves the C escapes of a -F or -v value, which come from the
// command line and have not been through the lexer.
func Unescape(s string) string { return unescape(s) }

// run runs BEGIN, the rules over the input, and END. Without rules and END the
// input is not read. nextfile leaves the file; what was read of it and not used is dropped.
func (in *interp) run() (int, error) {
	f := flowOn
	for _, s := range in.prog.begin {
		if f = in.top(s); f == flowExit {
			break
		}
	}
	if f != flowExit && (len(in.prog.rules) > 0 || len(in.prog.end) > 0) {
		for f != flowExit {
			// A BEGIN that has read with getline goes on where that stopped.
			line, ok, err := in.readMain()
			if err != nil {
				return 1, err
			}
			if !ok {
				break
			}
			in.setRecord(line)
			f = in.rules()
			if f == flowNextFile && in.in != nil {
				in.in.close()
				in.in = nil
			}
		}
	}
	// An exit in BEGIN or a rule runs the END actions all the same.
	for _, s := range in.prog.end {
		if f = in.top(s); f == flowExit {
			break
		}
	}
	// As wait(2) keeps 8 bits.
	return in.exit & 255, nil
}

// top runs an action; an exit or next in a function ends here. It is called for
// each rule of each record, so the deferred function is all that it costs. Functions are called
// by expressions, so a next in one must get past them.
func (in *interp) top(s *stmt) (f flow) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case unwind:
			// The calls that were in the way are gone.
			in.frame, in.depth = nil, 0
			f = flow(r)
		default:
			panic(r)
		}
	}()
	return in.exec(s)
}

// rules runs the rules on the present record.
func (in *interp) rules() flow {
	for _, r := range in.prog.rules {
		if !in.applies(r) {
			continue
		}
		// A pattern by itself prints the record.
		if r.body == nil {
			in.print(&stmt{op: "print"})
			continue
		}
		if f := in.top(r.body); f == flowNext || f == flowExit || f == flowNextFile {
			return f
		}
	}
	return flowOn
}

// applies reports whether a rule's pattern picks the record. A range may begin
// and end with the same one. ranges of all rules are kept up only while their rules are asked: a
// next before a rule leaves its range alone, as in the real one.
func (in *interp) applies(r *rule) bool {
	if r.pattern == nil {
		return true
	}
	if r.until == nil {
		return in.eval(r.pattern).truth()
	}
	if !in.ranges[r.n] && !in.eval(r.pattern).truth() {
		return false
	}
	in.ranges[r.n] = !in.eval(r.until).truth()
	return true
}

// tick counts work, and gives way every so often: an awk that loops for ever
// must let time pass, and signals in. 1024 statements is far below what a real awk does in a
// millisecond.
func (in *interp) tick() {
	if in.steps++; in.steps&1023 == 0 {
		in.host.Step()
	}
}

// block runs statements up to one that does not go on.
func (in *interp) block(list []*stmt) flow {
	for _, s := range list {
		if f := in.exec(s); f != flowOn {
			return f
		}
	}
	return flowOn
}

// exec runs a statement. Its cases are the kinds of statements that stmt names.
func (in *interp) exec(s *stmt) flow {
	in.tick()
	switch s.op {
	case "{":
		return in.block(s.list)
	case "e":
		in.eval(s.cond)
	case "print", "printf":
		in.print(s)
	case "if":
		if in.eval(s.cond).truth() {
			return in.exec(s.body)
		}
		if s.els != nil {
			return in.exec(s.els)
		}
	case "while", "do", "for":
		// They share the tests and the ends of their bodies.
		return in.loop(s)
	case "forin":
		arr := in.arrayOf(s.exprs[0])
		// The keys as they were at the beginning.
		for _, k := range arr.keys() {
			in.assign(s.v, inputStr(k))
			if f := in.exec(s.body); f == flowBreak {
				// It leaves the for of Go, and so of awk.
				break
			} else if f > flowContinue {
				return f
			}
		}
	case "next":
		return flowNext
	case "nextfile":
		return flowNextFile
	case "break":
		return flowBreak
	case "continue":
		return flowContinue
	case "exit":
		if s.cond != nil {
			in.exit = int(clampInt(in.eval(s.cond).float()))
		}
		return flowExit
	case "return":
		in.ret = value{}
		if s.cond != nil {
			in.ret = in.eval(s.cond)
		}
		return flowReturn
	case "delete":
		if s.v.op == "index" {
			in.arrayOf(s.v.a).remove(in.subscript(s.v.args))
		} else {
			in.arrayOf(s.v).clear()
		}
	}
	return flowOn
}

// loop runs while, do and for. continue still runs the third part of a for.
func (in *interp) loop(s *stmt) flow {
	if s.init != nil {
		in.exec(s.init)
	}
	for first := true; ; first = false {
		in.tick()
		if (s.op != "do" || !first) && s.cond != nil && !in.eval(s.cond).truth() {
			return flowOn
		}
		if f := in.exec(s.body); f == flowBreak {
			return flowOn
		} else if f > flowContinue {
			return f
		}
		if s.post != nil {
			in.exec(s.post)
		}
	}
}

// print runs print and printf. Numbers are printed by OFMT, all other
// conversions go by CONVFMT. The text is written at once, so what was evaluated before an error
// of writing has had its effects.
func (in *interp) print(s *stmt) {
	var text string
	switch {
	case s.op == "printf":
		text = sprintf(in.eval(s.exprs[0]).text(in.convfmt()), in.evalAll(s.exprs[1:]), in.convfmt())
	case len(s.exprs) == 0:
		text = in.getRecord() + in.vars[vORS].value.text("")
	default:
		var b strings.Builder
		for i, e := range s.exprs {
			if i > 0 {
				b.WriteString(in.vars[vOFS].value.text(in.convfmt()))
			}
			// Whole numbers ignore it.
			b.WriteString(in.eval(e).text(in.vars[vOFMT].value.str))
		}
		b.WriteString(in.vars[vORS].value.text(""))
		text = b.String()
	}
	w := in.host.Stdout()
	if s.redirect != "" {
		w = in.output(s.redirect, in.eval(s.dest).text(in.convfmt()))
	}
	if _, err := io.WriteString(w, text); err != nil {
		var e *Error
		if errors.As(err, &e) {
			panic(e)
		}
		fail("write error: " + err.Error())
	}
}

// convfmt is how numbers become text.
func (in *interp) convfmt() string { return in.vars[vCONVFMT].value.text("%.6g") }

// evalAll evaluates a list from the left.
func (in *interp) evalAll(list []*expr) []value {
	out := make([]value, len(list))
	for i, e := range list {
		out[i] = in.eval(e)
	}
	return out
}

// regexp is an expression used as a regular expression: one in slashes, or a
// text. A constant in slashes was compiled by the parser.
func (in *interp) regexp(e *expr) *posix.Regexp {
	if e.op == "regex" {
		return e.re
	}
	return in.compiled(in.eval(e).text(in.convfmt()))
}

// compiled compiles a text, or finds it compiled. An invalid one ends the program with busybox's
// message.
func (in *interp) compiled(pattern string) *posix.Regexp {
	re := in.regex[pattern]
	if re == nil {
		// A program that makes expressions of its data must not keep them all.
		if len(in.regex) > 200 {
			clear(in.regex)
		}
		re = compile(pattern)
		in.regex[pattern] = re
	}
	return re
}
