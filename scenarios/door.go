package scenarios

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfigv1 "k8s.io/kube-scheduler/config/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/internal/running"
	"github.com/drydock-sim/drydock/scenarios/internal/text"
	"github.com/drydock-sim/drydock/scenarios/internal/timeline"
	"github.com/drydock-sim/drydock/scenarios/result"
)

// APIVersion and Kind are what a scenario document begins with.
const (
	APIVersion = document.APIVersion
	Kind       = document.Kind
)

// What is loaded.
type (
	// Scenario is a simulated cluster, what happens to it, and what is expected.
	Scenario = document.Scenario
	// Metadata is what a scenario is called and how it is selected.
	Metadata = document.Metadata
	// Image is what is known of a container image.
	Image = document.Image
	// Devices are what a device plugin of a node offers.
	Devices = document.Devices
	// LoadOptions say how scenarios are loaded.
	LoadOptions = document.LoadOptions
	// Document is a decoded document of a kind other than Scenario.
	Document = document.Other
	// Position is a place in a file.
	Position = decode.Position
	// LoadError is one thing that is wrong with a document, LoadErrors all of them.
	LoadError  = decode.Error
	LoadErrors = decode.Errors
)

// What is run, and what it comes to.
type (
	// RunOptions say how a scenario is run. The zero value runs it as it stands.
	RunOptions = running.Options
	// Real has a scenario run in real time against a machine outside.
	Real = running.Real
	// SessionOptions say how a scenario's cluster is opened, for who runs it by himself.
	SessionOptions = running.SessionOptions
	// Session is a scenario's cluster in somebody else's hands.
	Session = running.Session
	// Progress is where a run stands.
	Progress = running.Progress
	// Result is the outcome of one run, Final what the API had at its end.
	Result = result.Result
	Final  = result.Final
)

// TimelineHeader names the columns of a timeline.
const TimelineHeader = timeline.Header

// Run runs a scenario and judges its expectations. The error is an internal
// one (a panic in a task, a trace that can't be written); the result then holds
// what there is. A ctx that ends stops the run, which is then marked as
// interrupted. A scenario may be run many times, also at once. One that was put together in Go
// is compiled first; LoadErrors say what is wrong with it.
func Run(ctx context.Context, s *Scenario, opts RunOptions) (*Result, error) {
	if !s.Loaded() {
		compiled, err := Compile(s, LoadOptions{})
		if err != nil {
			return &Result{Scenario: s.Metadata.Name}, err
		}
		s = compiled
	}
	return running.Run(ctx, s, opts)
}

// Check refuses what a run of the scenario would refuse before it begins and loading cannot know.
func Check(s *Scenario) error { return running.Check(s) }

// Open makes a scenario's cluster for somebody who runs it by himself.
func Open(s *Scenario, opts SessionOptions) (*Session, error) { return running.Open(s, opts) }

// Action is something that a timeline does.
type Action = document.Action

// KubeletWarnings says, one line each, what a KubeletConfiguration asks for that
// a simulated kubelet does not act on. cgroupDriver is the runtime's, "" for
// cgroupfs. A configuration of nil asks for nothing.
func KubeletWarnings(c *kubeletconfig.KubeletConfiguration, cgroupDriver string) []string {
	return running.KubeletWarnings(c, cgroupDriver)
}

// ParseTime is time.ParseDuration that also knows days, as in scenario files: 1d12h.
func ParseTime(s string) (time.Duration, error) { return decode.ParseTime(s) }

// ParseKubeletConfiguration reads a kubelet.config.k8s.io/v1beta1
// KubeletConfiguration strictly. Errors are LoadErrors.
func ParseKubeletConfiguration(file string, data []byte) (*kubeletconfig.KubeletConfiguration, error) {
	return document.ParseKubeletConfiguration(file, data)
}

// ParseKubeSchedulerConfiguration reads a kubescheduler.config.k8s.io/v1
// KubeSchedulerConfiguration strictly. Errors are LoadErrors.
func ParseKubeSchedulerConfiguration(file string, data []byte) (*schedulerconfigv1.KubeSchedulerConfiguration, error) {
	return document.ParseKubeSchedulerConfiguration(file, data)
}

// ParseImages, ParsePrograms and ParseFaults read what a container runtime can
// have of a scenario on its own: a list, a mapping that has it by its name, or a
// scenario. Errors are LoadErrors.
func ParseImages(file string, data []byte) ([]fakecri.Image, error) {
	return document.ParseImages(file, data)
}

// ParsePrograms reads what containers do.
func ParsePrograms(file string, data []byte) ([]fakecri.Program, error) {
	return document.ParsePrograms(file, data)
}

// ParseFaults reads faults of a container runtime; one needs no list.
func ParseFaults(file string, data []byte) ([]fakecri.Fault, error) {
	return document.ParseFaults(file, data)
}

// RuntimeImages are images as the runtime takes them.
func RuntimeImages(in []Image) []fakecri.Image { return document.RuntimeImages(in) }

// FieldErrors takes an error apart that names fields: an answer of the API
// (Invalid), or an aggregate of field errors. Any other error comes back as one
// without a field. It is for LoadOptions' hooks.
func FieldErrors(err error) field.ErrorList { return decode.FieldErrors(err) }

// ShortTime is a duration without the zeros that Go's form ends in: 2m, 1h30m.
func ShortTime(d time.Duration) string { return text.ShortTime(d) }

// Plural is "1 node", "2 nodes".
func Plural[N int | uint64](n N, what string) string { return text.Plural(n, what) }

// RoundWall shortens a wall time to three digits or so.
func RoundWall(d time.Duration) time.Duration { return text.RoundWall(d) }
