package fakecri

import (
	"fmt"
	"net/netip"
	"sort"
	"time"

	"github.com/drydock-sim/drydock/sim/loop"
	"github.com/drydock-sim/drydock/sim/trace"
)

// Range is a span of durations from which one is drawn, both ends included.
// A Max below Min counts as Min.
type Range struct{ Min, Max time.Duration }

// Exactly is the range that holds d only.
func Exactly(d time.Duration) Range { return Range{Min: d, Max: d} }

// Options configure a Runtime. Only Loop is required.
type Options struct {
	// Loop is the node's loop.
	Loop *loop.Loop
	// Recorder takes the trace; nil means none.
	Recorder *trace.Recorder

	// Name is the runtime's name, the prefix of container IDs in the API.
	// Default "containerd".
	Name string
	// Version is the runtime's version. Default "2.4.2".
	Version string
	// Node tells this node from others in ids. Default: the loop's name.
	Node string
	// CgroupDriver is "cgroupfs" (the default) or "systemd".
	CgroupDriver string
	// Handlers are the runtime handlers besides the default one ("").
	// Default: "runc".
	Handlers []string
	// PodCIDR is the prefix that pod IPs come from. Default "10.244.0.0/24".
	PodCIDR string

	// Latency is how long a CRI method takes, by its name; what is not named
	// takes what DefaultLatencies says.
	Latency map[string]Range

	// Images is the catalogue: what can be pulled, how it pulls, and what is
	// there from the start.
	Images []Image
	// OnlyListedImages makes pulls of anything else fail with NotFound. By
	// default any well-formed reference can be pulled.
	OnlyListedImages bool
	// ImageSize is the size in bytes of an image that says none.
	// Default 50 MB.
	ImageSize int64
	// ImagePull is how long an image that doesn't say takes to pull.
	// Default 1s to 3s.
	ImagePull Range

	// Programs say what containers do; the first that matches counts.
	Programs []Program
	// Interpret says what a container runs for which no program is stated; it
	// returns nil for what it can't tell. It may be nil.
	Interpret func(ProcessSpec) Main
	// Logs takes the log lines of programs; nil drops them.
	Logs LogSink
	// LogFile is told the absolute path of each container's log file when it
	// is opened, which makes it if it is not there. It may be nil.
	LogFile func(path string)
	// Warn takes one sentence about what is not acted on; nil drops it.
	Warn func(string)
}

// LogSink takes what containers write. It must not wait.
type LogSink interface {
	// WriteLog appends a line in CRI log format, newline included, to the
	// file at the absolute path, which it makes if need be.
	WriteLog(path string, line []byte)
	// ReopenLog makes the file at path anew, empty, if it is not there.
	ReopenLog(path string)
}

func (o *Options) setDefaults() {
	if o.Name == "" {
		o.Name = "containerd"
	}
	if o.Version == "" {
		o.Version = "2.4.2"
	}
	if o.Node == "" && o.Loop != nil {
		o.Node = o.Loop.Name()
	}
	if o.CgroupDriver == "" {
		o.CgroupDriver = "cgroupfs"
	}
	if o.Handlers == nil {
		o.Handlers = []string{"runc"}
	}
	if o.PodCIDR == "" {
		o.PodCIDR = "10.244.0.0/24"
	}
	if o.ImageSize == 0 {
		o.ImageSize = 50_000_000
	}
	if o.ImagePull == (Range{}) {
		o.ImagePull = Range{Min: time.Second, Max: 3 * time.Second}
	}
}

// Validate tells what is wrong with the options, naming the field. New panics
// on what Validate refuses.
func (o Options) Validate() error {
	o.setDefaults()
	if p, err := netip.ParsePrefix(o.PodCIDR); err != nil {
		return fmt.Errorf("podCIDR: %w", err)
	} else if p.Addr().BitLen()-p.Bits() < 2 {
		return fmt.Errorf("podCIDR: %s has no room for pods", o.PodCIDR)
	}
	if o.CgroupDriver != "cgroupfs" && o.CgroupDriver != "systemd" {
		return fmt.Errorf("cgroupDriver: %q is neither cgroupfs nor systemd", o.CgroupDriver)
	}
	names := make([]string, 0, len(o.Latency))
	for name := range o.Latency { //drydock:unordered sorted below
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if _, ok := methodByName(name); !ok {
			return fmt.Errorf("latency: no CRI method %q", name)
		}
		if o.Latency[name].Min < 0 {
			return fmt.Errorf("latency[%s]: negative", name)
		}
	}
	for i := range o.Images {
		if err := o.Images[i].Validate(); err != nil {
			return fmt.Errorf("images[%d]: %w", i, err)
		}
	}
	for i := range o.Programs {
		if err := o.Programs[i].Validate(); err != nil {
			return fmt.Errorf("programs[%d]: %w", i, err)
		}
	}
	return nil
}
