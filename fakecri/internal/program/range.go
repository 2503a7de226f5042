package program

import (
	"time"

	"github.com/drydock-sim/drydock/ground/usage"
)

// This file is what a stated program says to those who ask it something: over
// the network, or by an exec.

// The names of the streams in log files.
const (
	StdoutName = "stdout"
	StderrName = "stderr"
)

// Write is what a stated program writes to one place. On a full disk it gets
// what is left, and the rest when there is room.
type Write struct {
	// Path is where, in the container: in a mount it counts for what is mounted
	// (for a directory of the mount by that path), else for the writable layer.
	// What can't be written to takes nothing; what is on a tmpfs is memory that
	// the program uses.
	Path string
	// Bytes are how many are there, Inodes how many files and directories hold
	// them: without it one, if there are Bytes.
	Bytes, Inodes *usage.Curve
}

// InodesCurve is how many files there are: one, if there are bytes and nothing is said.
func (w Write) InodesCurve() *usage.Curve {
	if w.Inodes == nil && w.Bytes != nil {
		return usage.Constant(1)
	}
	return w.Inodes
}

// Millis is a range in milliseconds.
func Millis(lo, hi int) Range {
	return Range{Min: time.Duration(lo) * time.Millisecond, Max: time.Duration(hi) * time.Millisecond}
}

// Range is a span of durations from which one is drawn, both ends included.
// A Max below Min counts as Min.
type Range struct{ Min, Max time.Duration }

// Exactly is the range that holds d only.
func Exactly(d time.Duration) Range { return Range{Min: d, Max: d} }

// defaultMemory is in bytes.
const defaultMemory = 1 << 20

// What a stated program uses that says nothing of it.
var (
	defaultMemoryCurve    = usage.Constant(defaultMemory)
	defaultProcessesCurve = usage.Constant(1)
)

// MemoryCurve is what the program uses of memory, in bytes.
func (b *Behaviour) MemoryCurve() *usage.Curve {
	if b.Memory == nil {
		return defaultMemoryCurve
	}
	return b.Memory
}

// ProcessesCurve is how many processes it has.
func (b *Behaviour) ProcessesCurve() *usage.Curve {
	if b.Processes == nil {
		return defaultProcessesCurve
	}
	return b.Processes
}
