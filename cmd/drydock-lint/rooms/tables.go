package rooms

// Drydock returns the rules of this module.
func Drydock() Rules {
	return Rules{
		Core: []string{
			"kubelet/sync_loop.go", "kubelet/handlers.go", "kubelet/sync_pod.go", "kubelet/cleanups.go", "kubelet/node_reporter.go",
			"kubelet/internal/podworkers/predicates.go",
			"kubelet/internal/podworkers/workers.go",
			"kubelet/internal/pleg/generic.go",
			"kubelet/internal/nodestatus/manager.go", "kubelet/internal/nodestatus/register.go", "kubelet/internal/nodestatus/setters.go",
			"kubelet/prober/worker.go",
		},
		Layer: Layer{Files: []string{
			"ground/loop/elide.go", "kubelet/elide.go", "kubelet/elide_admission.go", "kubelet/elide_checks.go", "kubelet/elide_described.go",
			"kubelet/internal/podworkers/elide.go", "kubelet/internal/podworkers/describe.go",
			"kubelet/internal/nodestatus/elide.go", "kubelet/internal/pleg/elide.go", "kubelet/internal/status/elide.go",
			"kubelet/prober/elide.go",
		}},
		Catalogues: []Catalogue{
			{"fakecri/internal/busybox/applets", "an applet a file"},
			{"scenarios/action", "an action of a timeline a file"},
			{"sim/apiserver/internal/kinds", "a kind a file"},
		},
	}
}
