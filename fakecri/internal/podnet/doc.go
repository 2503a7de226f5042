// Package podnet is the pod network: addresses, the ports of stated programs, and what a node's
// own processes (probes, lifecycle handlers) get from them.
//
// There are two ways to a port. Where a stated program listens, the answer is computed, and takes
// no connection: Net.ask finds who answers at an address, and the Quick methods give the answer
// without a task. Where processes may listen, the answer is live: package kernel carries the
// bytes. Once anything on a node is interpreted, stated programs listen in the kernel as well
// (Net.Serve), so that both kinds of programs can reach each other.
//
// The two must not differ: the same program, asked by a probe and by a command in another
// container, says the same after the same time. So both make an answer value, and read it by the
// same methods.
//
// Errors read as those of Go's net package on Linux, since kubelets show them in events.
//
// # Answers that hold
//
// A probe that is asked every second of an unchanging program would cost a simulation most of its
// time. So an answer says whether it holds: whether asking again could give another one while the
// process and its network last. Whoever relies on that is told by Net.OnAnswerChange. holds.go
// has the rule.
//
// # Files
//
// Read network.go first: it has the answers. livenet.go has live connections, serve.go stated
// programs in the kernel, forward.go connections from outside the loop, ip.go the addresses.
package podnet
