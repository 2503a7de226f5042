// Package program is what stated programs are: what a container does, said by a
// scenario or by what is known of an image, in place of running anything.
//
// Everything here is data and functions of time since the program's start: nothing
// waits, and nothing is written to, so that a thousand containers share one
// Behaviour. Package process runs them, package podnet lets them answer.
//
// program.go has a program and its validation, answers.go what it answers over the
// network and to commands, range.go its durations and defaults, glob.go patterns.
package program

import (
	"fmt"
	"path"
	"slices"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/usage"
)

// Program says what the containers that it matches do.
type Program struct {
	// Name shows in errors; it may be empty.
	Name string
	// Match says which containers run it.
	Match Match
	// Beside: the container does what it does without the program, and the behaviour comes
	// beside that: its ports answer, its logs are written and what it uses counts.
	Beside bool
	// BesideKnown is Beside where it is known what the container does. Elsewhere the behaviour is
	// all that it does.
	BesideKnown bool
	// Behaviour is what each run of the container does.
	Behaviour
	// Attempts, when there are any, says in Behaviour's stead what each run
	// does, by the container's restart count; the last goes for all later runs.
	Attempts []Behaviour
}

// Match selects containers. Its fields are patterns with * and ?, where ""
// matches everything.
type Match struct {
	Namespace, Pod, Container string
	// Image is compared with the image as the pod writes it, and with its
	// full name ("docker.io/library/app:1").
	Image string
}

// Behaviour is what one run of a container does. Its zero value runs until it
// is stopped and exits 0 on SIGTERM.
type Behaviour struct {
	// RunFor is after how long it exits by itself; 0 means never.
	RunFor Range
	// ExitCode is the code it then exits with.
	ExitCode int32
	// ExitCodes is ExitCode by the container's restart count; the last goes
	// for all later runs.
	ExitCodes []int32
	// Signal makes it die of that signal instead: the code is 128+Signal.
	Signal int
	// OOMKilled makes the end an OOM kill: 137, reason OOMKilled. A program
	// whose Memory grows over the container's limit is killed without it.
	OOMKilled bool
	// ChildOOMKilled says that the OOM killer takes a child of the process,
	// which then goes on to its own end: its exit code stays what it is, the
	// reason is OOMKilled.
	ChildOOMKilled bool
	// StartError makes StartContainer fail with this text; the container is
	// EXITED then with code 128 and reason StartError.
	StartError string
	// OnTerm is what it does on SIGTERM or what else its stop signal is.
	OnTerm OnTerm
	// Memory is what it uses, in bytes, by the time since its start. Without
	// it 1 MiB. CPU is in millicores; without it 0.
	Memory, CPU *usage.Curve
	// Processes is how many processes it has, itself included; without it 1.
	Processes *usage.Curve
	// Writes is what it writes to files.
	Writes []Write
	// LogBytes is the length of its log, besides Logs: it only grows, with zeros
	// that are not kept. What is written while the disk is full is lost.
	LogBytes *usage.Curve
	// Logs is what it writes.
	Logs []LogLine
	// Ports is what it listens on. A program that says nothing of them (nil)
	// answers on every port that it is asked on.
	Ports []Port
	// others: it answers on ports that Ports doesn't list, too, as one that says nothing of them.
	others bool
	// Exec says how commands end that are run in the container; the first that
	// matches counts. Others exit 0.
	Exec []ExecRule
	// TerminationMessage is what it writes to its termination message file
	// before it ends, unless SIGKILL from outside ends it.
	TerminationMessage string
}

// OnTerm is what a process does on its stop signal. The zero value exits 0 at
// once.
type OnTerm struct {
	// Exit is the code to exit with.
	Exit int32
	// After is how long it takes. Its own end, by RunFor, doesn't come meanwhile.
	After Range
	// Ignore makes it go on as if nothing had happened.
	Ignore bool
	// Unhandled makes it die of the signal, 143 for SIGTERM, after After.
	Unhandled bool
}

// LogLine is a line that a process writes.
type LogLine struct {
	// At is when it is first written, after the process started.
	At time.Duration
	// Every is after how long it is written again; 0 means once.
	Every time.Duration
	// Count bounds how often; 0 means without bound.
	Count int
	// Stream is "stdout" (the default) or "stderr".
	Stream string
	// Text is the line, without newline.
	Text string
}

// Validate returns what is wrong with the program, naming the field.
func (p Program) Validate() error {
	if err := p.Behaviour.validate(); err != nil {
		return err
	}
	for i := range p.Attempts {
		if err := p.Attempts[i].validate(); err != nil {
			return fmt.Errorf("attempts[%d].%w", i, err)
		}
	}
	return nil
}

// validate refuses what could never happen: an end that says how, but not when.
func (b *Behaviour) validate() error {
	forever := b.RunFor.Min <= 0 && b.RunFor.Max <= 0
	switch {
	case b.RunFor.Min < 0:
		return fmt.Errorf("runFor: negative")
	case forever && b.ExitCode != 0:
		return fmt.Errorf("exitCode: without runFor the program never exits by itself")
	case forever && len(b.ExitCodes) > 0:
		return fmt.Errorf("exitCodes: without runFor the program never exits by itself")
	case forever && b.Signal != 0:
		return fmt.Errorf("signal: without runFor the program never exits by itself")
	case forever && b.OOMKilled:
		return fmt.Errorf("oomKilled: without runFor the program never exits by itself")
	case forever && b.ChildOOMKilled:
		return fmt.Errorf("childOOMKilled: without runFor the program never exits by itself")
	case b.ExitCode < 0 || b.ExitCode > 255:
		return fmt.Errorf("exitCode: %d is not within 0 to 255", b.ExitCode)
	case b.Signal < 0 || b.Signal > 64:
		return fmt.Errorf("signal: %d is not within 1 to 64", b.Signal)
	case b.OnTerm.Exit < 0 || b.OnTerm.Exit > 255:
		return fmt.Errorf("onTerm.exit: %d is not within 0 to 255", b.OnTerm.Exit)
	case b.OnTerm.After.Min < 0:
		return fmt.Errorf("onTerm.after: negative")
	}
	for i, c := range b.ExitCodes {
		if c < 0 || c > 255 {
			return fmt.Errorf("exitCodes[%d]: %d is not within 0 to 255", i, c)
		}
	}
	if err := b.validateAnswers(); err != nil {
		return err
	}
	for i, w := range b.Writes {
		if !path.IsAbs(w.Path) {
			return fmt.Errorf("writes[%d].path: %q is not absolute", i, w.Path)
		}
	}
	for i, l := range b.Logs {
		switch {
		case l.At < 0 || l.Every < 0 || l.Count < 0:
			return fmt.Errorf("logs[%d]: negative", i)
		case l.Stream != "" && l.Stream != StdoutName && l.Stream != StderrName:
			return fmt.Errorf("logs[%d].stream: %q is neither stdout nor stderr", i, l.Stream)
		}
	}
	return nil
}

// At returns the behaviour of the run with that restart count.
func (p *Program) At(attempt uint32) *Behaviour {
	if n := len(p.Attempts); n > 0 {
		return &p.Attempts[min(int(attempt), n-1)]
	}
	return &p.Behaviour
}

// ExitCodeOf is the code that a run exits with, by the restart count.
func (b *Behaviour) ExitCodeOf(attempt uint32) int32 {
	if n := len(b.ExitCodes); n > 0 {
		return b.ExitCodes[min(int(attempt), n-1)]
	}
	return b.ExitCode
}

// Matches reports whether a container of a pod runs the program; tags are its image's names in full.
func (m *Match) Matches(md *runtimeapi.PodSandboxMetadata, config *runtimeapi.ContainerConfig, tags []string) bool {
	if !GlobMatch(m.Namespace, md.Namespace) || !GlobMatch(m.Pod, md.Name) || !GlobMatch(m.Container, config.Metadata.Name) {
		return false
	}
	if m.Image == "" {
		return true
	}
	if MatchPattern(m.Image, config.Image.GetUserSpecifiedImage()) || MatchPattern(m.Image, config.Image.GetImage()) {
		return true
	}
	return slices.ContainsFunc(tags, func(t string) bool { return MatchPattern(m.Image, t) })
}

// DefaultBehaviour is that of a container with no program, EndingBehaviour that of one
// which is to end by itself.
var (
	DefaultBehaviour = &Behaviour{}
	EndingBehaviour  = &Behaviour{RunFor: Exactly(time.Second)}
)
