package fakecri

import (
	"time"
)

// method is a CRI method that this package implements.
type method uint8

const (
	mVersion method = iota
	mRunPodSandbox
	mStopPodSandbox
	mRemovePodSandbox
	mPodSandboxStatus
	mListPodSandbox
	mCreateContainer
	mStartContainer
	mStopContainer
	mRemoveContainer
	mListContainers
	mContainerStatus
	mUpdateContainerResources
	mUpdatePodSandboxResources
	mReopenContainerLog
	mExecSync
	mExec
	mAttach
	mPortForward
	mContainerStats
	mListContainerStats
	mPodSandboxStats
	mListPodSandboxStats
	mUpdateRuntimeConfig
	mStatus
	mRuntimeConfig
	mListImages
	mImageStatus
	mPullImage
	mRemoveImage
	mImageFsInfo
	mListMetricDescriptors
	mListPodSandboxMetrics
	mGetContainerEvents
	methodCount
)

// methods holds, per method, its name in the CRI and its latency unless
// Options.Latency says otherwise. Where a latency is given, it is what the
// method took on containerd 2.4.2 with runc 1.1.5 on an idle two-core machine
// (10th to 90th percentile, without what the processes themselves took). Reads
// took about a millisecond there, which shows nowhere, and take no time here.
var methods = [methodCount]struct {
	name    string
	latency Range
	reads   bool // changes nothing
}{
	mVersion:                   {name: "Version", reads: true},
	mRunPodSandbox:             {name: "RunPodSandbox", latency: ms(80, 140)},
	mStopPodSandbox:            {name: "StopPodSandbox", latency: ms(60, 150)},
	mRemovePodSandbox:          {name: "RemovePodSandbox", latency: ms(10, 30)},
	mPodSandboxStatus:          {name: "PodSandboxStatus", reads: true},
	mListPodSandbox:            {name: "ListPodSandbox", reads: true},
	mCreateContainer:           {name: "CreateContainer", latency: ms(10, 20)},
	mStartContainer:            {name: "StartContainer", latency: ms(50, 90)},
	mStopContainer:             {name: "StopContainer", latency: ms(50, 130)},
	mRemoveContainer:           {name: "RemoveContainer", latency: ms(5, 20)},
	mListContainers:            {name: "ListContainers", reads: true},
	mContainerStatus:           {name: "ContainerStatus", reads: true},
	mUpdateContainerResources:  {name: "UpdateContainerResources", latency: ms(10, 20)},
	mUpdatePodSandboxResources: {name: "UpdatePodSandboxResources", latency: ms(1, 5)},
	mReopenContainerLog:        {name: "ReopenContainerLog", latency: ms(1, 5)},
	mExecSync:                  {name: "ExecSync", latency: ms(25, 50), reads: true}, // then the command runs
	mExec:                      {name: "Exec", reads: true},
	mAttach:                    {name: "Attach", reads: true},
	mPortForward:               {name: "PortForward", reads: true},
	mContainerStats:            {name: "ContainerStats", reads: true},
	mListContainerStats:        {name: "ListContainerStats", reads: true},
	mPodSandboxStats:           {name: "PodSandboxStats", reads: true},
	mListPodSandboxStats:       {name: "ListPodSandboxStats", reads: true},
	mUpdateRuntimeConfig:       {name: "UpdateRuntimeConfig", latency: ms(1, 5)},
	mStatus:                    {name: "Status", reads: true},
	mRuntimeConfig:             {name: "RuntimeConfig", reads: true},
	mListImages:                {name: "ListImages", reads: true},
	mImageStatus:               {name: "ImageStatus", reads: true},
	mPullImage:                 {name: "PullImage"}, // plus the image's own pull time
	mRemoveImage:               {name: "RemoveImage", latency: ms(10, 30)},
	mImageFsInfo:               {name: "ImageFsInfo", reads: true},
	mListMetricDescriptors:     {name: "ListMetricDescriptors", reads: true},
	mListPodSandboxMetrics:     {name: "ListPodSandboxMetrics", reads: true},
	mGetContainerEvents:        {name: "GetContainerEvents", reads: true}, // until the stream begins
}

// name is the method's in the CRI.
func (m method) name() string { return methods[m].name }

// repeatShare is what part of its latency a stop takes that finds nothing left
// to stop: recorded were 10 to 20 ms for a second StopPodSandbox.
const repeatShare = 8

func ms(lo, hi int) Range {
	return Range{Min: time.Duration(lo) * time.Millisecond, Max: time.Duration(hi) * time.Millisecond}
}

// Methods lists the names of the CRI methods that a [Fault] or a latency can
// name.
func Methods() []string {
	out := make([]string, methodCount)
	for m := range methods {
		out[m] = methods[m].name
	}
	return out
}

func methodByName(name string) (method, bool) {
	for m := range methods {
		if methods[m].name == name {
			return method(m), true
		}
	}
	return 0, false
}
