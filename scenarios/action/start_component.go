package action

// StartComponent starts a component of the control plane that was stopped.
//
// In the timeline: starts a component of the control plane that was stopped.
type StartComponent struct {
	// Which one.
	Component string `json:"component" required:"" enum:"kube-scheduler,kube-controller-manager"`
}

// Do starts it anew: it lists everything first, as a restarted process does.
func (a *StartComponent) Do(s Stage) error {
	note(s, "component "+a.Component, "start")
	s.Cluster().ControlPlane().Start(a.Component)
	return nil
}
