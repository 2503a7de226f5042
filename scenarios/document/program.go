package document

import (
	"reflect"
	"time"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// Program is what the containers that it matches do.
type Program struct {
	// Which containers do it. What is left out matches everything.
	Match Match `json:"match" required:""`
	// What is said here comes beside what the container does by itself, its command's or its image's server: the ports answer, the logs are written, and the memory and CPU count. Of a port that both serve, this is the answer. Nothing else can be said so. Unless it is set, what is said here comes in place of that; but a program of nothing except `memory` and `cpu` comes beside whatever is known.
	Beside bool `json:"beside,omitempty"`
	// What each run of the container does.
	Behaviour `json:",inline"`
	// What each run does, in its order, instead of what is said beside `attempts`; the last goes for all later runs.
	Attempts []Behaviour `json:"attempts,omitempty"`

	// Pos is where the program is written.
	Pos decode.Position `json:"-"`
}

// Match selects containers. All fields are patterns, in which * stands for any text and ? for one character.
type Match struct {
	// The pod's name.
	Pod string `json:"pod,omitempty"`
	// The pod's namespace.
	Namespace string `json:"namespace,omitempty"`
	// The container's name.
	Container string `json:"container,omitempty"`
	// The image, as the pod names it.
	Image string `json:"image,omitempty"`
}

// Behaviour is what one run of a container does.
type Behaviour struct {
	// How long it runs until it exits by itself: a time or a range. For ever unless said.
	RunFor *value.Range `json:"runFor,omitempty"`
	// The exit code that it then exits with, 0 to 255.
	Exit int32 `json:"exit,omitempty"`
	// The exit code of each run, in their order; the last goes for all later runs.
	Exits []int32 `json:"exits,omitempty"`
	// The signal that it then dies of, instead of exiting: SIGKILL, SIGSEGV, 9, ...
	Signal value.Signal `json:"signal,omitempty"`
	// It then dies as killed for want of memory: exit code 137, reason OOMKilled.
	OOMKilled bool `json:"oomKilled,omitempty"`
	// Starting it fails with this message.
	StartError string `json:"startError,omitempty"`
	// What it does on SIGTERM, or on what else its stop signal is. It exits 0 at once unless said.
	OnTerm OnTerm `json:"onTerm,omitempty"`
	// How much memory it uses. 1Mi unless said.
	Memory *value.Usage `json:"memory,omitempty"`
	// How much CPU it uses, in cores. None unless said.
	CPU *value.Usage `json:"cpu,omitempty"`
	// How many processes it has, its first included. One unless said.
	Processes *value.Usage `json:"processes,omitempty"`
	// What it writes into its files.
	Writes []Write `json:"writes,omitempty"`
	// How large its log is beside the lines of `logs`: bytes that nobody reads. It only grows.
	LogBytes *value.Usage `json:"logBytes,omitempty"`
	// The lines that it writes: texts, written at its start, or lines with their times.
	Logs []LogLine `json:"logs,omitempty"`
	// The ports that it listens on: numbers, or ports with what they answer. Unless said it answers on every port that it is asked on; `[]` says that it listens nowhere.
	Ports []Port `json:"ports,omitempty"`
	// How commands end that are run in it, by probes and hooks: the first that matches counts. Others exit 0.
	Exec []ExecRule `json:"exec,omitempty"`
	// What it leaves as its termination message when it ends, unless it is killed.
	TerminationMessage string `json:"terminationMessage,omitempty"`
}

// OnTerm is what a container does on its stop signal.
type OnTerm struct {
	// The exit code that it exits with, 0 to 255.
	Exit int32 `json:"exit,omitempty"`
	// How long that takes: a time or a range. At once unless said.
	After *value.Range `json:"after,omitempty"`
	// It takes no notice.
	Ignore bool `json:"ignore,omitempty"`
	// It dies of the signal, as a process without a handler does: exit code 143 for SIGTERM.
	Unhandled bool `json:"unhandled,omitempty"`
}

// LogLine is a line that a container writes.
type LogLine struct {
	// The text, without newline.
	Line string `json:"line" required:""`
	// When it is written, after the container's start.
	After time.Duration `json:"after,omitempty"`
	// How long until it is written again. Once only unless said.
	Every time.Duration `json:"every,omitempty"`
	// How often it is written. Without end unless said.
	Count int `json:"count,omitempty"`
	// Where to. stdout unless said.
	Stream string `json:"stream,omitempty" enum:"stdout,stderr"`
}

// Write is what a container writes to a place of its own, beside what its command writes.
type Write struct {
	// Where, inside the container. In a mounted volume it counts for that volume, else for the container's writable layer.
	Path string `json:"path" required:""`
	// How many bytes are there. None unless said.
	Bytes *value.Usage `json:"bytes,omitempty"`
	// How many files and directories are there. One, while there are bytes, unless said.
	Inodes *value.Usage `json:"inodes,omitempty"`
}

// Check wants either one behaviour or attempts, which are checked as behaviours
// beside.
func (p *Program) Check(at decode.Place) {
	p.Pos = at.Pos()
	if len(p.Attempts) > 0 && !reflect.ValueOf(p.Behaviour).IsZero() {
		at.Field("attempts").Errorf("what is said beside attempts is not looked at: say it in the attempts")
	}
	p.Behaviour.Check(at)
	if p.Beside {
		p.checkBeside(at)
	}
	for i := range p.Attempts {
		if len(p.Attempts[i].Exits) > 0 {
			at.Field("attempts").Index(i).Field("exits").Errorf("an attempt has one exit code: exit")
		}
	}
}

// checkBeside wants nothing that only what runs in place of the command could do.
func (p *Program) checkBeside(at decode.Place) {
	if len(p.Attempts) > 0 {
		at.Field("attempts").Errorf("can't be beside the command")
	}
	rest := p.Behaviour
	rest.Ports, rest.Logs, rest.Memory, rest.CPU = nil, nil, nil, nil
	if !reflect.ValueOf(rest).IsZero() {
		at.Field("beside").Errorf("only ports, logs, memory and cpu can be beside the command")
	}
	if p.Ports == nil && p.Logs == nil && p.Memory == nil && p.CPU == nil {
		at.Field("beside").Errorf("has no effect: needs ports, logs, memory or cpu")
	}
}

// onlyUses reports whether the program says what a container uses and nothing of what it does.
func (p *Program) onlyUses() bool {
	rest := p.Behaviour
	rest.Memory, rest.CPU = nil, nil
	return (p.Memory != nil || p.CPU != nil) && len(p.Attempts) == 0 && reflect.ValueOf(rest).IsZero()
}

// Check checks what a run does; that it ends somehow takes a runFor.
func (b *Behaviour) Check(at decode.Place) {
	checkExit(at.Field("exit"), b.Exit)
	for i, c := range b.Exits {
		checkExit(at.Field("exits").Index(i), c)
	}
	if b.RunFor == nil || b.RunFor.Max == 0 {
		for _, f := range []struct {
			name string
			set  bool
		}{{"exit", b.Exit != 0}, {"exits", len(b.Exits) > 0}, {"signal", b.Signal != 0}, {"oomKilled", b.OOMKilled}} {
			if f.set {
				at.Field(f.name).Errorf("without runFor the container never exits by itself")
			}
		}
	}
	if b.RunFor != nil && b.RunFor.Max == 0 {
		at.Field("runFor").Errorf("must be more than 0s")
	}
	if b.Exit != 0 && len(b.Exits) > 0 {
		at.Field("exits").Errorf("there is exit too: only one of them is looked at")
	}
	b.Memory.Check(at.Field("memory"), value.Bytes())
	b.CPU.Check(at.Field("cpu"), value.Cores())
	b.Processes.Check(at.Field("processes"), value.Count())
	b.LogBytes.Check(at.Field("logBytes"), value.Bytes())
	first := map[string]int{}
	for i := range b.Writes {
		path := b.Writes[i].Path
		if k, ok := first[path]; ok && path != "" {
			at.Field("writes").Index(i).Field("path").Errorf("%q is that of writes[%d] too", decode.Short(path), k)
		}
		first[path] = i
	}
}

// Check checks that what is said goes together.
func (o *OnTerm) Check(at decode.Place) {
	checkExit(at.Field("exit"), o.Exit)
	if o.Ignore && (o.Exit != 0 || o.After != nil || o.Unhandled) {
		at.Field("ignore").Errorf("a container that ignores the signal does nothing else on it")
	} else if o.Unhandled && o.Exit != 0 {
		at.Field("unhandled").Errorf("a container that dies of the signal has no exit code of its own")
	}
}

// Check wants an absolute path, and something to write there.
func (w *Write) Check(at decode.Place) {
	if w.Path != "" && !isCleanPath(w.Path) {
		at.Field("path").Errorf("%q is no absolute path, or not the shortest", decode.Short(w.Path))
	}
	if w.Bytes == nil && w.Inodes == nil {
		at.Errorf("writes nothing: needs bytes or inodes")
	}
	w.Bytes.Check(at.Field("bytes"), value.Bytes())
	w.Inodes.Check(at.Field("inodes"), value.Count())
}

// DecodeYAML takes any scalar for a line that is written at the start.
func (l *LogLine) DecodeYAML(at decode.Place) bool {
	text, scalar := at.Scalar()
	if scalar {
		l.Line = text
	}
	return scalar
}

// Check refuses a negative number of lines.
func (l *LogLine) Check(at decode.Place) {
	value.NotNegative(at.Field("count"), l.Count)
}

// checkExit refuses what no process can exit with.
func checkExit(at decode.Place, c int32) {
	if c < 0 || c > 255 {
		at.Errorf("the exit code %d is not within 0 and 255", c)
	}
}

// RuntimePrograms are programs as the runtime takes them.
func RuntimePrograms(in []Program) []fakecri.Program {
	out := make([]fakecri.Program, 0, len(in))
	for i := range in {
		p := &in[i]
		f := fakecri.Program{
			Match:     fakecri.Match{Namespace: p.Match.Namespace, Pod: p.Match.Pod, Container: p.Match.Container, Image: p.Match.Image},
			Behaviour: p.Behaviour.runtime(), Beside: p.Beside, BesideKnown: p.onlyUses(),
		}
		for k := range p.Attempts {
			f.Attempts = append(f.Attempts, p.Attempts[k].runtime())
		}
		out = append(out, f)
	}
	return out
}

// runtime is the behaviour as the runtime takes it.
func (b *Behaviour) runtime() fakecri.Behaviour {
	out := fakecri.Behaviour{
		RunFor: b.RunFor.Runtime(), ExitCode: b.Exit, ExitCodes: b.Exits, Signal: int(b.Signal),
		OOMKilled: b.OOMKilled, StartError: b.StartError,
		OnTerm: fakecri.OnTerm{Exit: b.OnTerm.Exit, After: b.OnTerm.After.Runtime(), Ignore: b.OnTerm.Ignore, Unhandled: b.OnTerm.Unhandled},
		Memory: b.Memory.Amount(), CPU: b.CPU.Amount(), Processes: b.Processes.Amount(), LogBytes: b.LogBytes.Amount(),
	}
	for _, w := range b.Writes {
		out.Writes = append(out.Writes, fakecri.Write{Path: w.Path, Bytes: w.Bytes.Amount(), Inodes: w.Inodes.Amount()})
	}
	for _, l := range b.Logs {
		out.Logs = append(out.Logs, fakecri.LogLine{At: l.After, Every: l.Every, Count: l.Count, Stream: l.Stream, Text: l.Line})
	}
	b.answers(&out)
	return out
}
