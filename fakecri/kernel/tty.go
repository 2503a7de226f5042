package kernel

import (
	"context"
	"io"
	"path"
	"slices"

	"github.com/drydock-sim/drydock/ground/loop"
)

// maxTypedLine is how long a line can be that is typed at a terminal (Linux's
// MAX_CANON, with its newline); what is more is dropped.
const maxTypedLine = 4096

// What a terminal's line editing acts on, and what it shows.
const (
	keyInterrupt = 0x03 // ^C
	keyEOF       = 0x04 // ^D
	keyBackspace = 0x08
	keyKill      = 0x15 // ^U
	keyQuit      = 0x1c // ^\
	keyErase     = 0x7f
)

// TTY is a pseudo-terminal in canonical mode: what is typed is shown, can be
// edited, and is read by lines; a newline that is written is shown as carriage
// return and newline; ^C and ^\ send signals, ^D is the end of the input. No
// other mode can be set.
//
// It is what "tty: true" in a container's spec and kubectl exec -t give a process as its three
// standard descriptors. The screen is a File of the runtime's, which carries it to the client.
type TTY struct {
	out  File // takes what is shown
	refs int  // slaves that are open
	// line is typed and not entered yet.
	line     []byte
	lines    [][]byte // typed and not read yet; an empty one is an end of input
	readable loop.Signal
	hungUp   bool
	// leader is the process that the terminal was made for: a container's first, or an exec's.
	leader  *Process
	prompts bool // the leader is a shell that asks for commands
	// leaderReads says that the leader waits for input.
	leaderReads bool

	// Width and Height are the window's, in characters; 0 if not known.
	Width, Height uint16
}

// NewTTY returns a terminal whose screen is out; it takes that reference over,
// and closes it when nobody has the terminal open any more. Slaves that were opened and closed
// end it; one that never had a slave stays.
func (m *Machine) NewTTY(out File) *TTY { return &TTY{out: out} }

// Slave returns the file that a process has open.
func (t *TTY) Slave() File {
	t.refs++
	return ttySlave{t}
}

// Keyboard returns the file that what is typed is written to. Its Close hangs
// up: the processes read what was typed, then the end of the input.
func (t *TTY) Keyboard() File { return ttyKeyboard{t} }

// SetLeader says whom ^C is for: the processes below p if there are any, else p.
func (t *TTY) SetLeader(p *Process) { t.leader = p }

// Resize sets the window's size, in characters. A terminal that is resized to the same size tells
// nobody, as Linux's does.
func (t *TTY) Resize(width, height uint16) {
	if width == t.Width && height == t.Height {
		return
	}
	t.Width, t.Height = width, height
	for _, p := range t.foreground() {
		p.deliver(SIGWINCH, true)
	}
}

// WindowSize tells the size, in characters, of the terminal that a file is; ok
// says that it is one.
func WindowSize(f File) (width, height uint16, ok bool) {
	s, ok := f.(ttySlave)
	if !ok {
		return 0, 0, false
	}
	return s.t.Width, s.t.Height, true
}

// Prompts has a shell say that it asks for commands at the terminal: ^C then
// begins a new line instead of ending it.
func Prompts(f File) bool {
	s, ok := f.(ttySlave)
	if ok {
		s.t.prompts = true
	}
	return ok
}

// foreground are the processes that a signal of the keyboard is for. There is no job control, so
// there are no foreground groups to ask: all descendants count.
func (t *TTY) foreground() []*Process {
	if t.leader == nil || t.leader.dead {
		return nil
	}
	var below []*Process
	list := slices.Clone(t.leader.children)
	for i := 0; i < len(list); i++ {
		if p := list[i]; !p.dead {
			below = append(below, p)
			list = append(list, p.children...)
		}
	}
	if len(below) > 0 {
		return below
	}
	return []*Process{t.leader}
}

// interrupt is ^C or ^\: for a shell that waits at its prompt a new line, else
// a signal for what runs in the foreground. An interactive shell catches SIGINT for itself; the
// shell here does not, so the terminal does it.
func (t *TTY) interrupt(sig int) {
	if t.prompts && t.leaderReads && isShell(t.leader) { // what runs in the background is spared
		t.enter([]byte("\n"))
		return
	}
	for _, p := range t.foreground() {
		p.deliver(sig, true)
	}
}

// isShell reports whether a process is one that prompts, by its name.
func isShell(p *Process) bool {
	switch path.Base(first(p.Argv)) {
	case "sh", "ash", "bash", "dash":
		return true
	}
	return false
}

// enter makes a line readable; an empty one is an end of input.
func (t *TTY) enter(line []byte) {
	t.lines = append(t.lines, line)
	t.readable.Notify()
}

// key acts on one character and returns what is shown of it.
func (t *TTY) key(c byte, echo []byte) []byte {
	switch c {
	case '\r', '\n':
		t.enter(append(t.line, '\n'))
		t.line = nil
		return append(echo, '\r', '\n')
	case keyEOF:
		t.enter(t.line)
		// ^D in the middle of a line enters what was typed, without a newline; at its start it is
		// the end.
		t.line = nil
		return echo
	case keyErase, keyBackspace:
		if len(t.line) == 0 {
			return echo
		}
		n := len(t.line) - 1
		for n > 0 && t.line[n]&0xc0 == 0x80 { // the rest of a UTF-8 character
			n--
		}
		t.line = t.line[:n]
		return append(echo, "\b \b"...)
	case keyKill:
		for range t.line {
			echo = append(echo, "\b \b"...)
		}
		t.line = nil
		return echo
	case keyInterrupt, keyQuit:
		t.line = nil
		echo = append(echo, '^', c+'@', '\r', '\n')
		if c == keyQuit {
			t.interrupt(SIGQUIT)
		} else {
			t.interrupt(SIGINT)
		}
		return echo
	}
	if len(t.line) >= maxTypedLine-1 {
		// The bell, as Linux rings when its buffer is full.
		return append(echo, '\a')
	}
	t.line = append(t.line, c)
	// Control characters show as ^X (ECHOCTL).
	if c < ' ' && c != '\t' {
		return append(echo, '^', c+'@')
	}
	return append(echo, c)
}

// ttySlave is the side of a terminal that processes have open.
type ttySlave struct{ t *TTY }

// IsTTY is what kernel.IsTTY looks for.
func (ttySlave) IsTTY() bool { return true }

// Path is the name of the terminal in the container.
func (ttySlave) Path() string { return "/dev/pts/0" }

// Dup is of File.
func (s ttySlave) Dup() File {
	s.t.refs++
	return s
}

// Read returns what is left of the oldest line, if b has room for it. A line that is longer than
// b is read in parts, as in canonical mode.
func (s ttySlave) Read(ctx context.Context, b []byte) (int, error) {
	t := s.t
	if len(b) == 0 {
		return 0, nil
	}
	for len(t.lines) == 0 {
		if t.hungUp {
			t.readable.Notify()
			return 0, io.EOF
		}
		if err := t.await(ctx); err != nil {
			return 0, err
		}
	}
	line := t.lines[0]
	n := copy(b, line)
	if n < len(line) {
		t.lines[0] = line[n:]
	} else {
		t.lines = t.lines[1:]
	}
	if len(t.lines) > 0 {
		t.readable.Notify()
	}
	// An empty entry is ^D: one end of input, after which reading goes on.
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// await waits for a line, and remembers that the leader does.
func (t *TTY) await(ctx context.Context) error {
	if p := From(ctx); p != nil && p == t.leader {
		t.leaderReads = true
		defer func() { t.leaderReads = false }()
	}
	return wait(ctx, &t.readable)
}

// Write shows b. A newline shows as carriage return and newline (ONLCR), so logs of a container
// with a terminal have \r\n, as kubectl logs shows them.
func (s ttySlave) Write(ctx context.Context, b []byte) (int, error) {
	shown := make([]byte, 0, len(b)+8)
	for _, c := range b {
		if c == '\n' {
			shown = append(shown, '\r')
		}
		shown = append(shown, c)
	}
	if _, err := s.t.out.Write(ctx, shown); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close is of File. The screen ends with the last slave: the client of an attach sees the end of
// the stream.
func (s ttySlave) Close() error {
	s.t.refs--
	if s.t.refs == 0 {
		return s.t.out.Close()
	}
	return nil
}

// ttyKeyboard is the other side's input.
type ttyKeyboard struct{ t *TTY }

// Read finds nothing.
func (ttyKeyboard) Read(context.Context, []byte) (int, error) { return 0, io.EOF }

// Write types b.
func (k ttyKeyboard) Write(ctx context.Context, b []byte) (int, error) {
	t := k.t
	// Nobody has the terminal open: like a hang-up.
	if t.hungUp || t.refs <= 0 {
		return 0, brokenPipe(ctx)
	}
	echo := make([]byte, 0, len(b)+8)
	for _, c := range b {
		echo = t.key(c, echo)
	}
	if len(echo) > 0 {
		if _, err := t.out.Write(ctx, echo); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// Close hangs up. A line that was not entered is read as it is, then comes the end. No SIGHUP is
// sent.
func (k ttyKeyboard) Close() error {
	if !k.t.hungUp {
		k.t.hungUp = true
		if len(k.t.line) > 0 {
			k.t.enter(k.t.line)
			k.t.line = nil
		}
		k.t.readable.Notify()
	}
	return nil
}

// Dup returns the same keyboard.
func (k ttyKeyboard) Dup() File { return k }
