package action

import "github.com/drydock-sim/drydock/fakecri"

// KillSandbox kills a pod's sandbox process behind the kubelet's back: its
// containers die with it.
type KillSandbox struct{ OnSandbox }

// OnlySimulated is because the CRI has no call for it.
func (*KillSandbox) OnlySimulated() {}

// Do kills it.
func (a *KillSandbox) Do(s Stage) error {
	return behind(s, "kill of the sandbox", a.Node, a.Pod, "", func(rt *fakecri.Runtime) error { return rt.KillSandboxOutside(a.Pod) }, nil)
}
