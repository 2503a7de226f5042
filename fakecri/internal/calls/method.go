package calls

import "github.com/drydock-sim/drydock/fakecri/internal/program"

// Method is a CRI method that this package implements.
type Method uint8

const (
	Version Method = iota
	RunPodSandbox
	StopPodSandbox
	RemovePodSandbox
	PodSandboxStatus
	ListPodSandbox
	CreateContainer
	StartContainer
	StopContainer
	RemoveContainer
	ListContainers
	ContainerStatus
	UpdateContainerResources
	UpdatePodSandboxResources
	ReopenContainerLog
	ExecSync
	Exec
	Attach
	PortForward
	ContainerStats
	ListContainerStats
	PodSandboxStats
	ListPodSandboxStats
	UpdateRuntimeConfig
	Status
	RuntimeConfig
	ListImages
	ImageStatus
	PullImage
	RemoveImage
	ImageFsInfo
	ListMetricDescriptors
	ListPodSandboxMetrics
	GetContainerEvents
	methodCount
)

// methods holds, per method, its name in the CRI and its latency unless
// Options.Latency says otherwise. Where a latency is given, it is what the
// method took on containerd 2.4.2 with runc 1.1.5 on an idle two-core machine
// (10th to 90th percentile, without what the processes themselves took). Reads
// took about a millisecond there, which shows nowhere, and take no time here.
var methods = [methodCount]struct {
	name    string
	latency program.Range
	reads   bool // changes nothing
}{
	Version:                   {name: "Version", reads: true},
	RunPodSandbox:             {name: "RunPodSandbox", latency: program.Millis(80, 140)},
	StopPodSandbox:            {name: "StopPodSandbox", latency: program.Millis(60, 150)},
	RemovePodSandbox:          {name: "RemovePodSandbox", latency: program.Millis(10, 30)},
	PodSandboxStatus:          {name: "PodSandboxStatus", reads: true},
	ListPodSandbox:            {name: "ListPodSandbox", reads: true},
	CreateContainer:           {name: "CreateContainer", latency: program.Millis(10, 20)},
	StartContainer:            {name: "StartContainer", latency: program.Millis(50, 90)},
	StopContainer:             {name: "StopContainer", latency: program.Millis(50, 130)},
	RemoveContainer:           {name: "RemoveContainer", latency: program.Millis(5, 20)},
	ListContainers:            {name: "ListContainers", reads: true},
	ContainerStatus:           {name: "ContainerStatus", reads: true},
	UpdateContainerResources:  {name: "UpdateContainerResources", latency: program.Millis(10, 20)},
	UpdatePodSandboxResources: {name: "UpdatePodSandboxResources", latency: program.Millis(1, 5)},
	ReopenContainerLog:        {name: "ReopenContainerLog", latency: program.Millis(1, 5)},
	ExecSync:                  {name: "ExecSync", latency: program.Millis(25, 50), reads: true}, // then the command runs
	Exec:                      {name: "Exec", reads: true},
	Attach:                    {name: "Attach", reads: true},
	PortForward:               {name: "PortForward", reads: true},
	ContainerStats:            {name: "ContainerStats", reads: true},
	ListContainerStats:        {name: "ListContainerStats", reads: true},
	PodSandboxStats:           {name: "PodSandboxStats", reads: true},
	ListPodSandboxStats:       {name: "ListPodSandboxStats", reads: true},
	UpdateRuntimeConfig:       {name: "UpdateRuntimeConfig", latency: program.Millis(1, 5)},
	Status:                    {name: "Status", reads: true},
	RuntimeConfig:             {name: "RuntimeConfig", reads: true},
	ListImages:                {name: "ListImages", reads: true},
	ImageStatus:               {name: "ImageStatus", reads: true},
	PullImage:                 {name: "PullImage"}, // plus the image's own pull time
	RemoveImage:               {name: "RemoveImage", latency: program.Millis(10, 30)},
	ImageFsInfo:               {name: "ImageFsInfo", reads: true},
	ListMetricDescriptors:     {name: "ListMetricDescriptors", reads: true},
	ListPodSandboxMetrics:     {name: "ListPodSandboxMetrics", reads: true},
	GetContainerEvents:        {name: "GetContainerEvents", reads: true}, // until the stream begins
}

// Name is the method's in the CRI.
func (m Method) Name() string { return methods[m].name }

// RepeatShare is what part of its latency a stop takes that finds nothing left
// to stop: recorded were 10 to 20 ms for a second StopPodSandbox.
const RepeatShare = 8

// Methods lists the names of the CRI methods that a [Fault] or a latency can
// name.
func Methods() []string {
	out := make([]string, methodCount)
	for m := range methods {
		out[m] = methods[m].name
	}
	return out
}

// MethodByName finds a method by its name in the CRI.
func MethodByName(name string) (Method, bool) {
	for m := range methods {
		if methods[m].name == name {
			return Method(m), true
		}
	}
	return 0, false
}
