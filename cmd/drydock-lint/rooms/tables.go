package rooms

// Drydock returns the rules of this module.
func Drydock() Rules {
	return Rules{
		Core: []string{
			"kubelet/sync_loop.go", "kubelet/pod_workers.go", "kubelet/sync_pod.go",
			"kubelet/internal/pleg/generic.go",
			"kubelet/internal/nodestatus/manager.go", "kubelet/internal/nodestatus/register.go", "kubelet/internal/nodestatus/setters.go",
			"kubelet/prober/worker.go",
		},
		Layer: Layer{Files: []string{
			"ground/loop/elide.go", "kubelet/elide.go", "kubelet/elide_checks.go", "kubelet/elide_described.go", "kubelet/elide_syncs.go",
			"kubelet/internal/nodestatus/elide.go", "kubelet/internal/pleg/elide.go", "kubelet/internal/status/elide.go",
			"kubelet/prober/elide.go",
		}},
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
