// Package output takes what containers write, to where it goes: their log files, in
// the CRI's format, and the clients that are attached.
//
// logs.go opens and closes files and writes the lines of stated programs when they
// are due; logstream.go is standard output or error of a process, which is cut into
// lines; attach.go hands a copy to clients, each at its own speed up to a bound.
package output
