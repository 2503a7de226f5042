// Package controller is the ground that the controllers of sim/controlplane stand
// on. It mirrors client-go's util/workqueue, pkg/controller's helpers and the
// clients that kube-controller-manager builds.
//
// A controller reads the API's objects as they are (an informer's cache that is
// never behind) and hears of changes from apiserver.Server.OnChange, where it
// decides in O(1) which keys to add. What upstream shows because caches lag
// (expectations, for example) is kept only where a user sees it: a sync begins
// one watch latency after the change, and each of its requests takes its time, so
// what was read before a request is read again after it.
//
// The files: options.go, what every controller is made of; queue.go, keys and
// their back-off; workload.go, what controllers of pods share; owned.go, indexes
// by owner; claim.go, adopting and releasing pods; podcontrol.go, making and
// deleting them; write.go, requests by kind; pods.go, a pod's conditions;
// events.go and election.go, events and the loss of the API.
package controller
