package kubelet

import (
	"path"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
	"github.com/drydock-sim/drydock/kubelet/internal/metrics"
	"github.com/drydock-sim/drydock/kubelet/record"
)

// base is what every part of a kubelet works with: what it was given, and whom it
// tells. It is complete when assemble has made the recorder, and never changes after.
type base struct {
	opts     Options
	l        *loop.Loop
	g        *loop.Group
	nodeName string
	cfg      *kubeletconfig.KubeletConfiguration
	settings *Settings
	client   Client // nil in standalone mode
	fs       FS
	podsDir  string
	log      func(format string, args ...any)
	// systemdCgroups: the runtime has systemd make its cgroups.
	systemdCgroups bool
	// nodeRef is whom events about the node are about.
	nodeRef  *v1.ObjectReference
	recorder *record.Recorder
	metrics  *metrics.Kubelet
}

// logf makes a log line, if anybody takes them.
func (b *base) logf(format string, args ...any) {
	if b.log != nil {
		b.log(format, args...)
	}
}

// exit ends the kubelet, as upstream's process would exit with code 1.
func (b *base) exit(err error) {
	b.logf("Failed to run kubelet: %v", err)
	if b.opts.Exit != nil {
		b.opts.Exit(err)
	}
}

// nodeEvent records an event about the node.
func (b *base) nodeEvent(eventtype, reason, message string) {
	b.recorder.Event(b.nodeRef, eventtype, reason, message)
}

// podDir mirrors upstream's getPodDir (pkg/kubelet/kubelet_getters.go).
func (b *base) podDir(uid types.UID) string { return b.podsDir + "/" + string(uid) }

// podLogDir mirrors upstream's BuildPodLogsDirectory
// (pkg/kubelet/kuberuntime/helpers.go).
func (b *base) podLogDir(namespace, name string, uid types.UID) string {
	return path.Join(b.cfg.PodLogsDir, namespace+"_"+name+"_"+string(uid))
}

// gcPolicy says which dead containers stay.
func (b *base) gcPolicy() kuberuntime.GCPolicy {
	if b.opts.GC != nil {
		return *b.opts.GC
	}
	return kuberuntime.DefaultGCPolicy()
}

// cgroupNames are the paths of this node's cgroups.
func (b *base) cgroupNames() cm.Names {
	return cm.Names{Root: b.cfg.CgroupRoot, Systemd: b.systemdCgroups}
}
