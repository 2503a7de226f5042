// Package apiserver is the Kubernetes API of a simulated cluster, in memory.
// It mirrors kube-apiserver v1.36 (pkg/registry, pkg/apis/core,
// k8s.io/apiserver/pkg/registry) for the kinds in its table: what kubelets need, the
// workloads, and what the control plane writes.
//
// # Its parts
//
// [Store] is the state machine: a method per verb that takes the time, returns
// the object and tells its hooks of each change. It has no loop, no latency and
// no randomness but the seed. [Server] puts a Store on a loop of its own: it
// takes the requests of nodes, sends watch events to them, and applies faults.
// [Client] is what a node's kubelet calls; it lives on the node's loop. What a
// scenario or a controller does, it does on the server's loop, through the
// Server's own methods ([Server.Apply], [Server.Patch], [Server.Delete], ...). A part
// of the control plane that takes latency and limits goes by a [Component].
//
// This package is the door and what has a loop: server.go takes requests, user.go is
// what needs none, client.go, exchange.go and renew.go are the node's side,
// component.go the control plane's, watch.go and watch_objects.go both sides of
// watches; definitions.go has custom resources come and go. What stands behind it, each room importing only those below it:
//
//	store      the state and the verbs over it
//	admission  what writes need of other objects; policies and webhooks
//	kinds      the catalogue of kinds, a file each; podspec, the rules of pods
//	custom     rows made of CustomResourceDefinitions
//	kind       what a row of the table says, and the table
//	flow       priority and fairness; stats, what is counted
//	wire       requests, faults, clients' limits
//	merge      statuses as kubelets patch them; asjson, times as JSON has them
//	policy     CEL of policies; quota, what objects use; token, JSON web tokens
//	table      objects by name; fields, checks of single fields
//
// To add a kind, write its file in kinds and name it in kinds.New: see there.
//
// # Objects
//
// Every object that the package hands out is shared and must never be written
// to: an update makes a new object that shares what did not change. The kubelet's
// calls work on structs; JSON appears only in a user's patch or apply. What a
// status patch brings is taken over, not copied, where it is stored as it came.
// Events are stored packed and made anew when somebody asks, so their pointers
// say nothing about identity.
//
// # What differs from upstream
//
// Without clients there are no managed fields, and of the service account only the
// name; [Server.OpenDoor] brings both, with tokens. There is no authorization. Of
// admission's plugins those are there that are on by default and have an effect, and
// EventRateLimit where there are limits; TaintNodesByCondition acts where somebody
// takes the taint away ([Store.TaintNewNodes]). Webhooks are asked about what clients
// write, not about what the cluster's own controllers do. Resource versions count the
// writes, beginning at 1. Unknown fields are errors. Feature gates are as at v1.36
// without flags; what they drop, the rows say.
package apiserver
