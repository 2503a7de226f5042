package scenarios

// Conformance marks a scenario as one that `drydock conformance` runs, in real time, against a container runtime outside. Such a scenario has one node, containers of drydock-actor images, and nothing that is done to the runtime.
type Conformance struct {
	// Whether a runtime must pass it to be of use to a kubelet. required unless said.
	Level string `json:"level,omitempty" enum:"required,optional"`
	// Why it is optional, or what it takes, for the report.
	Reason string `json:"reason,omitempty"`
	// What the run must have besides a runtime; where that is missing the scenario is skipped: `podNetwork`, the pods' addresses can be reached from where the run is; `mounts`, the run may mount a tmpfs on the runtime's machine; `root`, the run may do as it likes with the files that containers make.
	Needs []string `json:"needs,omitempty"`
	// It may run beside others. Its pods then use no port of the host that another one's do.
	Parallel bool `json:"parallel,omitempty"`
}

// ConformanceNeeds are what a scenario may need besides a runtime.
func ConformanceNeeds() []string { return []string{"podNetwork", "mounts", "root"} }
