package rooms

// Drydock returns the rules of this module.
func Drydock() Rules {
	return Rules{
		Catalogues: []Catalogue{
			{"fakecri/internal/busybox/applets", "an applet a file"},
			{"scenarios/action", "an action of a timeline a file"},
		},
		Pending: []Pending{
			{Files, "kubelet"},
			{Methods, "kubelet.Kubelet"},
		},
	}
}
