// Package shell is sh: an evaluator of the POSIX shell's language as BusyBox's
// ash (1.35) understands it, on virtual time and a fake machine's processes and
// files (package kernel).
//
// Parsing is mvdan.cc/sh/v3/syntax's; everything after it is this package's:
// expansion, redirection, job control, traps and the builtins follow ash, down
// to the wording of its messages, since containers' logs and termination
// messages show them, and down to which command takes the shell's place (sh -c
// 'a; b' runs b by exec, with a newline after b it does not), since process
// numbers and signals show that. What is not built is told on the container's
// stderr and by [kernel.Container.Warn].
//
// A shell is a tree walker on one task. Errors and exit are states that make
// all levels return (shell.skip), not panics: a panic on a task is the loop's.
//
// Time: a builtin takes 20 µs; it passes in slices of a millisecond, or when
// the shell forks, so that a loop of builtins gives way, and is cheap. Starting
// a process takes what package kernel says.
//
// Where what is: state.go has the type shell, and process.go what of it knows
// no language; command.go reads sh's command line. eval.go and simple.go walk
// the tree: compound commands, and simple ones with what their first word
// names; subshell.go is for what runs in a process of its own, children.go
// waits for those. expand.go, param.go and substitute.go turn words into
// fields, redirect.go opens files, trap.go acts on signals, builtin*.go,
// printf.go and test.go are the builtins. idle.go parks loops that only sleep.
// Below internal, script parses, pattern matches and arith calculates; they
// know no shell.
package shell
