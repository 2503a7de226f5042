// Package lifecycle takes sandboxes and containers through their states, in the order and with
// the errors of containerd's CRI plugin. It is the runtime's state machine: what happens beside a
// change of state (processes, network, disks, sums) is another package's, called from here.
//
// # A sandbox
//
//	(nothing) --RunPodSandbox--> READY --StopPodSandbox--> NOTREADY --RemovePodSandbox--> (nothing)
//
// A name is reserved when RunPodSandbox begins, and shows once it is done. A sandbox becomes
// NOTREADY too when its process is killed or the machine loses power; its address stays taken
// until StopPodSandbox, whatever became of it. RemovePodSandbox stops what is READY first, and
// removes the containers.
//
// # A container
//
//	(nothing) --CreateContainer--> CREATED --StartContainer--> RUNNING --its end--> EXITED --RemoveContainer--> (nothing)
//
// CREATED can only be left by a start, or a removal; a start that fails leads to EXITED with code
// 128. UNKNOWN is a running container that the runtime has lost track of: StopContainer makes it
// EXITED with code 255. Nothing leads back from EXITED: a restart is another container with
// another attempt.
//
// Every transition makes itself known: to listings (records.Store) and to those who stream events
// (Machine.Event).
//
// # Calls at once
//
// A call takes time (its latency), and others may begin and end meanwhile. So each checks twice:
// before the latency, for what can be refused at once, and after it, right before it changes
// anything; between that last check and the change nothing waits. What must be exclusive for the
// whole time has a mark: a reserved name, Starting, Removing.
//
// # Files
//
// lifecycle.go has the machine and begins RunPodSandbox; sandbox.go and container.go have the
// transitions, pull.go the images'. Calls that have to give back a name when they are cancelled
// are acts (calls.Act): Begin reserves, End does, Undo gives back. validate.go is what requests
// are refused for before anything is changed.
package lifecycle
