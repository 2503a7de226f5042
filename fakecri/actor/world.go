package actor

import (
	"context"
	"io/fs"
	"strings"
	"time"
)

// World is what the program runs in. A context belongs to a task of the
// program: what waits takes that of the task that calls it. Tasks of one
// program never run at the same time; they give way where they wait.
// There are two: conformance/actor has the real machine's, fakecri/actor/fake the
// simulated one's.
type World interface {
	// Args is the command line with the program's name, Env the environment.
	Args() []string
	Env() []string
	// PID and PPID are the numbers of the process and its parent.
	PID() int
	PPID() int
	// Identity is whom it runs as.
	Identity() (uid, gid int, groups []int)
	Hostname() string
	// Dir is the working directory.
	Dir() string

	// Now is the time; Sleep waits.
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration)
	// Go starts a task, whose context it hands over.
	Go(name string, fn func(ctx context.Context))
	// Exit ends the program. It does not return.
	Exit(ctx context.Context, code int)
	// Signals has signals kept for Signal from now on. Others of the first 15
	// end the program with 128 and their number.
	Signals(list ...int)
	// Signal waits for one of the signals that are kept, at most d (negative:
	// for ever); 0 means that none came.
	Signal(ctx context.Context, d time.Duration) int
	// Kill sends a signal.
	Kill(pid, sig int) error
	// Spawn starts the program once more, with other arguments, and returns
	// its number. Nobody waits for it.
	Spawn(ctx context.Context, args ...string) (int, error)

	// Files of the process: standard input, output and error.
	Stdin() File
	Stdout() File
	Stderr() File
	IsTerminal(f File) bool
	// Open is os.OpenFile.
	Open(name string, flag int, perm fs.FileMode) (File, error)
	Stat(name string) (Info, error)
	ReadDir(name string) ([]string, error)
	Readlink(name string) (string, error)
	Mkdir(name string, perm fs.FileMode) error
	Remove(name string) error
	Chmod(name string, mode fs.FileMode) error
	Chtimes(name string, t time.Time) error
	Symlink(target, name string) error
	Rename(from, to string) error

	// Listen opens a TCP port on all addresses, Dial connects to one.
	Listen(ctx context.Context, port int) (Listener, error)
	Dial(ctx context.Context, host string, port int, timeout time.Duration) (Conn, error)

	// Alloc takes memory and touches it. Burn uses a share of one processor,
	// in thousandths of a second each second, until the program ends.
	Alloc(ctx context.Context, bytes int64) error
	Burn(ctx context.Context, millis int)
}

// File is an open file or connection.
type File interface {
	Read(ctx context.Context, b []byte) (int, error)
	Write(ctx context.Context, b []byte) (int, error)
	Close() error
}

// Conn is a connection.
type Conn interface {
	File
	// CloseWrite says that no more will be sent.
	CloseWrite() error
	// Remote is the address of the other end.
	Remote() string
}

// Listener is an open port.
type Listener interface {
	Accept(ctx context.Context) (Conn, error)
}

// Info describes a file.
type Info struct {
	Mode     fs.FileMode
	Size     int64
	UID, GID int
}

// The signals that the program knows, by number.
const (
	sigHUP   = 1
	sigINT   = 2
	sigQUIT  = 3
	sigKILL  = 9
	sigUSR1  = 10
	sigUSR2  = 12
	sigTERM  = 15
	sigWINCH = 28
)

// Fatal are the signals that end the program if it does not keep them.
func Fatal() []int { return []int{sigHUP, sigINT, sigQUIT, sigTERM} }

// Known are all signals that the program deals with.
func Known() []int {
	return []int{sigHUP, sigINT, sigQUIT, sigUSR1, sigUSR2, sigTERM, sigWINCH}
}

// signalNames are the signals that the program knows, by their numbers on Linux.
var signalNames = map[string]int{
	"HUP": sigHUP, "INT": sigINT, "QUIT": sigQUIT, "KILL": sigKILL, "USR1": sigUSR1, "USR2": sigUSR2, "TERM": sigTERM, "WINCH": sigWINCH,
}

// signalName is a signal's name without SIG.
func signalName(sig int) string {
	for name, n := range signalNames { //drydock:unordered each number has one name
		if n == sig {
			return name
		}
	}
	return itoa(sig)
}

// SignalNumber is the number of a signal by its name ("SIGUSR1", "USR1"), 0 for
// one that the program doesn't know.
func SignalNumber(name string) int { return signalNames[strings.TrimPrefix(name, "SIG")] }
