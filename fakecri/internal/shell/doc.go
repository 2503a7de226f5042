// Package shell is sh: an evaluator of the POSIX shell's language as BusyBox's ash (1.35)
// understands it, on virtual time and a fake machine's processes and files (package kernel).
//
// It is there because manifests are full of it: command: ["sh", "-c", ...], probes that exec a
// test, preStop hooks that sleep, init containers that wait for a file. What a pod shows of them
// - logs, exit codes, the seconds until SIGTERM is heeded - comes from the script, so the script
// is run.
//
// Parsing is mvdan.cc/sh/v3/syntax's; everything after it is this package's: expansion,
// redirection, job control, traps and the builtins follow ash. They follow it down to the wording
// of its messages, since containers' logs and termination messages show them, and down to which
// command takes the shell's place (sh -c 'a; b' runs b by exec, with a newline after b it does
// not), since process numbers and signals show that: a program that took the place of process 1
// gets the kubelet's SIGTERM itself, while a child of the shell does not. What is not built is
// told on the container's stderr and by [kernel.Container.Warn].
//
// A shell is a tree walker on one task. Errors and exit are states that make all levels return
// (shell.skip), not panics: a panic on a task is the loop's. So whatever runs or expands
// something looks at skip before it goes on; the states, and who ends them, are at type skip.
//
// A subshell is a copy of the Go value shell in a process of its own (shell.fork). The syntax
// tree is shared by everything that runs the same text, and never written to.
//
// Time: a builtin takes 20 µs; it passes in slices of a millisecond, or when the shell forks, so
// that a loop of builtins gives way, and is cheap. Starting a process takes what package kernel
// says.
//
// Where to begin: state.go has the type shell, and process.go the part of it that knows no
// language: messages, time and signals. command.go reads sh's command line and feeds commands to
// eval.go, which walks the tree: compound commands there, simple ones with what their first word
// names in simple.go. subshell.go is for what runs in a process of its own, children.go waits for
// those. expand.go turns words into fields; param.go has $x and ${x...}, substitute.go $(...),
// <(...) and $((...)). redirect.go opens files, trap.go acts on signals, vars.go keeps variables.
// builtin.go lists the builtins and has those that change what runs next; builtin_io.go,
// builtin_proc.go, builtin_vars.go, printf.go and test.go have the others. idle.go parks loops
// that only sleep: read it last, since nothing else needs it. Below internal, script parses,
// pattern matches and arith calculates; they know no shell.
package shell
