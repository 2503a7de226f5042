// Package conformance checks what a kubelet needs of a container runtime, against any CRI socket,
// in real time.
//
// There are two kinds of checks in one list. Those named cri/... call the socket directly, one
// subject each: idempotence, error codes, filters, what is kept of a configuration, states, logs,
// images. Those named kubelet/... are scenarios of the library (scenarios/library/conformance): a
// whole kubelet core of its own runs the scenario's pods on the runtime, and its expectations are
// judged; the same files run in virtual time as ordinary scenarios.
//
// The direct checks are not a copy of critest. They ask what the kubelet's code relies on, so
// each comment says which of its doings would go wrong, and a code or text is only compared where
// the kubelet looks at it.
//
// Each check is required (a kubelet cannot do without) or optional (features that runtimes may
// lack). A result says what was expected, what came and which RPCs were made around it.
//
// # Guests
//
// A run is a guest on the runtime. All it makes carries labels of the run (LabelRun, LabelScope);
// its kubelets are shown nothing else, and so can end nothing else; its images are pulled from a
// registry of its own, and only those are removed. Whatever happens (a failed check, a panic,
// Ctrl-C), what was made is removed at the end, and a last check says whether something is left.
//
// # Time
//
// Runtimes are real, and machines differ. So no check measures speed: what must be so at once is
// asked right after the call, what may take a while by T.eventually with a limit that only ends
// what hangs, and times are compared with wide bounds.
//
// # Files
//
// run.go runs the list, options.go says with what; check.go has what comes of it and report.go
// writes it. t.go is what a check may call, with pods.go, logs.go and what stands beside the
// checks that need it. The checks are in checks_*.go by subject, each file beginning with its
// part of the list: to add one, write its function and its entry. scenario.go runs a scenario's
// kubelet on the runtime, scope.go shows that kubelet its own things only, needs.go finds out
// what the machine lacks. recorder.go keeps the calls, cleanup.go removes what was made.
package conformance
