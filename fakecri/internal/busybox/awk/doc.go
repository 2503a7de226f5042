// Package awk is the awk of busybox: a parser and an interpreter that walks the tree. It reaches
// the world through Host alone, so it knows nothing of processes and files. Text is bytes, as in
// the C locale. The order of `for (k in a)` is that of busybox's hash table.
//
// In reading order: value.go has what a variable can hold; lex.go, parse.go and parse_expr.go
// make a Program of the text; interp.go runs its rules over records, eval.go its expressions,
// builtin.go the functions, format.go printf; fields.go keeps $0 and the fields in step, inout.go
// reads records and keeps what is open.
//
// What is subtle in awk, and where it is decided: whether a text counts as a number
// (value.numeric), whether a / divides (lexer.regexOK), whether a > redirects (parser.noGT),
// whether a name is an array (cell.arr, at run time), when fields are cut and $0 is put together
// (interp.split and stale).
//
// Where busybox differs from POSIX it is followed: numbers of input may be octal or hexadecimal,
// integers of printf have 32 bits, "\/" and the like are resolved by the lexer. Of gawk's
// extensions it has what busybox has (bit functions, systime, strftime, mktime, nextfile, ** for
// ^). Not built: getline's and printf's coprocesses, printf's * width, gensub, sorting of arrays.
// Such a program is a syntax error or ends with busybox's message.
//
// Errors are panics of fail within the package; Parse and Run turn them into errors, since
// neither the tree's walk nor the recursive descent could do anything about them.
package awk

import (
	"io"
	"time"
)

// Host is what a program needs of its surroundings. The applet implements it by a process's files
// and children. All its methods are called on that process's task, and those that open, read or
// wait may wait there.
type Host interface {
	// Open opens a file for reading; "-" is the standard input.
	Open(name string) (io.ReadCloser, error)
	// Create opens a file for writing.
	Create(name string, appending bool) (io.WriteCloser, error)
	// PipeFrom starts a shell command whose output is read.
	PipeFrom(command string) (Pipe, error)
	// PipeTo starts a shell command whose input is written.
	PipeTo(command string) (Pipe, error)
	// System runs a shell command and returns its status.
	System(command string) int
	// Stdout is the standard output; Flush empties what it buffers.
	Stdout() io.Writer
	Flush()
	// Environ returns NAME=value pairs.
	Environ() []string
	// Now is the time.
	Now() time.Time
	// Step is called now and then, so that an endless program gives way.
	Step()
	// Hold says that the program keeps a text of n bytes.
	Hold(n int)
}

// Pipe is one end of a shell command. Wait closes it and returns the command's
// exit status, for which it may have to wait.
type Pipe interface {
	io.ReadWriter
	Wait() int
}

// Error is a mistake in a program or one of its runs. Its text is what busybox
// prints after "awk: ", which the caller puts there.
type Error struct{ Text string }

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// fail ends parsing or the run with a message.
func fail(text string) { panic(&Error{Text: text}) }
