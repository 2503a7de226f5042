//go:build linux

package server

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/drydock-sim/drydock/fakecri"
)

// Options configure a Server. The zero value is a server at the wall clock's speed with an empty
// runtime on this machine.
type Options struct {
	// Runtime configures the runtime. Loop is ignored, and so is what else the
	// server supplies itself: the streaming server and, unless Isolated, the
	// machine's files and ports, and log files.
	Runtime fakecri.Options
	// Speed is how many times as fast as the wall clock programs and
	// latencies run. Timeouts of requests, and all times that clients see,
	// are the wall clock's. 0 means 1; at most MaxSpeed.
	Speed float64
	// Seed decides ids and draws. The same seed gives the same ids for the same calls in the same
	// order; when calls come is the client's doing, so runs are not repeatable as simulated ones
	// are.
	Seed uint64
	// Root is the directory that ImageFsInfo names, which a kubelet asks the
	// size of. "" means what containerd's would be.
	Root string
	// StreamAddress is the host:port on which exec, attach and port-forward
	// are served. "" means any port of 127.0.0.1.
	StreamAddress string
	// Faults are there from the start.
	Faults []fakecri.Fault
	// Record takes a JSON line for every call; it is used by one goroutine at
	// a time, and not closed.
	Record io.Writer
	// Grace is how long Stop waits for calls in flight. Default 2s.
	Grace time.Duration
	// EventBuffer is how many events a subscriber of GetContainerEvents can be
	// behind before its stream is ended. Default 4096.
	EventBuffer int
	// Warn takes a sentence about what is not acted on or went wrong inside;
	// it is called from any goroutine. nil drops it.
	Warn func(string)
	// Debug adds stacks to what Warn is told of panics.
	Debug bool
	// Isolated keeps what runs in containers off this machine: host paths are
	// in memory, or in Runtime.FS or Runtime.Host; logs go to Runtime.Logs, if
	// anywhere; no port is opened but the streaming server's. It is for requests
	// whose paths nobody has thought of, as in fuzzing.
	Isolated bool
}

// MaxSpeed is the highest Options.Speed; MinSpeed the lowest.
const (
	// Beyond them the translation of times between the clocks loses too much.
	MaxSpeed = 10_000
	MinSpeed = 0.001
)

// validate returns what is wrong with the options, naming the field.
func (o *Options) validate() error {
	switch {
	case math.IsNaN(o.Speed) || o.Speed != 0 && (o.Speed < MinSpeed || o.Speed > MaxSpeed):
		return fmt.Errorf("speed: %v is not within %v and %v", o.Speed, MinSpeed, MaxSpeed)
	case o.Grace < 0:
		return fmt.Errorf("grace: %v is negative", o.Grace)
	case o.EventBuffer < 0:
		return fmt.Errorf("eventBuffer: %d is negative", o.EventBuffer)
	}
	for i := range o.Faults {
		if err := o.Faults[i].Validate(); err != nil {
			return fmt.Errorf("faults[%d]: %w", i, err)
		}
	}
	return nil
}

// setDefaults sets what each field says it is by default.
func (o *Options) setDefaults() {
	o.Speed = cmp.Or(o.Speed, 1)
	o.Grace = cmp.Or(o.Grace, 2*time.Second)
	o.EventBuffer = cmp.Or(o.EventBuffer, 4096)
	o.Runtime.PodCIDR = cmp.Or(o.Runtime.PodCIDR, DefaultPodCIDR)
}

// DefaultPodCIDR is where pods have their addresses: all of 127/8 is the
// machine's own, so that what a pod listens on can be reached.
const DefaultPodCIDR = "127.244.0.0/16"

// DefaultSandboxImage is what listings show as the image of sandboxes.
const DefaultSandboxImage = "registry.k8s.io/pause:3.10.1"

// NoLatency is what Options.Runtime.Latency is for calls that take no time. An empty map would
// mean the defaults; it names each method with a range of zero.
func NoLatency() map[string]fakecri.Range {
	out := map[string]fakecri.Range{}
	for _, m := range fakecri.Methods() {
		out[m] = fakecri.Range{}
	}
	return out
}
