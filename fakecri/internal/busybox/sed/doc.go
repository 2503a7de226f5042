// Package sed is the sed of busybox: a parser of scripts (parse.go), and the editing of lines
// (run.go). It reaches files through Host alone, so it knows nothing of processes.
//
// A script becomes a list of commands in which blocks and branches are jumps, so a run is a loop
// over the list for each line (a cycle). What a and r append waits for the end of the cycle, as
// POSIX says. The pattern space is the line that is edited, the hold space a second one that
// lines can be put aside in.
//
// It follows busybox where that differs: l does nothing, y with sets of two lengths goes by the
// shorter, a block that is not closed ends with the script, and N on the last line prints it. -s,
// -z and GNU's --posix are not built.
package sed

import "io"

// Host is what a script needs of its surroundings. Its files are the caller's
// to open and close, and its errors are passed on as they are. With -i the input and the output
// change from file to file, behind its back.
type Host interface {
	// Next returns the next line of the input and whether a newline ended it;
	// ok is false at the end of the last file.
	Next() (line string, newline, ok bool, err error)
	// Last reports whether no further line will come.
	Last() bool
	// Stdout is where lines go; with in-place editing the present file.
	Stdout() io.Writer
	// ReadFile returns a file for the r command.
	ReadFile(name string) ([]byte, error)
	// WriteFile opens a file for the w command, emptied.
	WriteFile(name string) (io.Writer, error)
	// Step is called now and then, so that an endless script gives way.
	Step()
}

// Error is a mistake in a script, as busybox prints it after "sed: ". Errors of
// files are the host's own.
type Error struct{ Text string }

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// fail ends parsing or the run with a message; Parse and Run make an error of
// it.
func fail(text string) { panic(&Error{Text: text}) }
