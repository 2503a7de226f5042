// Package actor is the test program of the conformance checks: its command
// language, and what it does. The program is written once, against a [World]
// that gives it files, time, signals and a network: package conformance/actor
// runs it on a real machine, [Commands] of package fakecri/actor/fake in the
// containers of the fake runtime. So both say the same, byte by byte.
//
// The program is small and static, and an image of it has nothing else: no
// shell. What a test wants of a container is an option of "run", what it wants
// of an exec is a command:
//
//	/actor run --log=hello --log-every=1s --http=8080 --unhealthy-after=20s
//	/actor run --for=2s --exit=1,1,0 --count=/data/runs
//	/actor test-file /tmp/healthy
//
// "actor help" lists them all. Options are --name=VALUE, or --name for those
// that take none, anywhere after the command; "--" ends them. Durations are Go's
// ("1.5s", "300ms"), sizes have the suffixes of Kubernetes ("64Mi", "1k").
//
// It exits with 0 or with what it was told to, with 1 if what a command is about
// fails (a line "actor: COMMAND: ..." on stderr says how), with 2 if the command
// line is wrong, and with 128 and the number of a signal if SIGTERM, SIGINT,
// SIGHUP or SIGQUIT ends a command other than run and pause. Its first argument
// is the name that it was called by: called as "pause" it is "actor pause".
//
// # Why a program of our own
//
// A check compares two runtimes, so both must run the same thing. An image of a
// distribution says what its tools say, which differs from version to version, and
// the fake runtime would have to say it too. This program says little, always the
// same, and nothing that depends on the machine.
//
// # Files
//
// command.go has the table of commands and the program, options.go those of run,
// parse.go the command line. run.go is the command run, serve.go its HTTP server and
// grpc.go its health server, on the little of HTTP/2 in http2.go. files.go and info.go
// are the commands of execs, client.go those that connect. world.go is all that the
// program knows of where it runs. image.go lists the test images, with what their
// registry does to who pulls them.
//
// Scenario checks use [Parse] to find mistakes before anything runs.
package actor
