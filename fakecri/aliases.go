package fakecri

import (
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/accounts"
	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/images"
	"github.com/drydock-sim/drydock/fakecri/internal/output"
	"github.com/drydock-sim/drydock/fakecri/internal/podkernel"
	"github.com/drydock-sim/drydock/fakecri/internal/process"
	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/internal/streams"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// What callers say and are told is declared by the part that acts on it; these
// are its names for everybody outside.
type (
	// Range is a span of durations from which one is drawn.
	Range = program.Range
	// Program says what the containers that its Match selects do: a Behaviour,
	// of which the rest are parts.
	Program    = program.Program
	Match      = program.Match
	Behaviour  = program.Behaviour
	OnTerm     = program.OnTerm
	LogLine    = program.LogLine
	Write      = program.Write
	Port       = program.Port
	HTTPAnswer = program.HTTPAnswer
	GRPCAnswer = program.GRPCAnswer
	ExecRule   = program.ExecRule

	// Fault is a rule that makes calls slow, hang or fail.
	Fault      = calls.Fault
	FaultError = calls.FaultError

	// Image is an entry of the catalogue, Trees the files that images have.
	Image       = images.Image
	ImageAuth   = images.ImageAuth
	PullFailure = images.PullFailure
	PullCount   = images.PullCount
	Trees       = images.Trees

	// SandboxConfig is a sandbox's configuration in two parts.
	SandboxConfig = records.SandboxConfig

	// SystemUsage is what the machine itself uses, NodeUsage what all do.
	SystemUsage = accounts.SystemUsage
	NodeUsage   = accounts.NodeUsage
	OOMKill     = accounts.OOMKill

	// Unserved is a port that a container is asked on and that nobody in its pod serves.
	Unserved = process.Unserved
	// Listening tells of a port that was opened or closed.
	Listening = podkernel.Listening
	// Far is what pods' processes reach beyond their node, by connections whose near
	// end is a FarEnd and whose other end is a Conn there.
	Far       = kernel.Far
	FarEnd    = kernel.FarEnd
	FarWriter = kernel.FarWriter
	Conn      = kernel.Conn
	// LogSink takes what containers write, LogFiles in files that can fail.
	LogSink  = output.LogSink
	LogFiles = output.LogFiles
	// Streams are a client's ends of what runs in a container, Window its
	// terminal.
	Streams = streams.Streams
	Window  = streams.Window
	// ExitError says that a command ended with another code than 0.
	ExitError = streams.ExitError
)

// ErrNothingThere is in the chain of the errors about a sandbox or container
// that the runtime doesn't have, or that doesn't run where it would have to.
var ErrNothingThere = records.ErrNothingThere

// Exactly is the range that holds d only.
func Exactly(d time.Duration) Range { return program.Exactly(d) }

// MatchPattern reports whether s matches a pattern in which * stands for any
// text (also with slashes) and ? for one byte.
func MatchPattern(p, s string) bool { return program.MatchPattern(p, s) }

// Methods lists the names of the CRI methods that a [Fault] or a latency can
// name.
func Methods() []string { return calls.Methods() }

// NewTrees returns what New fills.
func NewTrees() *Trees { return images.NewTrees() }

// IsDown reports whether an error is a call's while the runtime's daemon is down.
func IsDown(err error) bool { return calls.IsDown(err) }

// DebianApplets lists the commands of Debian's busybox that containers can run,
// sorted; the shell is not among them.
func DebianApplets() []string { return images.DebianApplets() }
