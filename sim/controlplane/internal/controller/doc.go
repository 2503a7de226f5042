// Package controller is the ground that the controllers of sim/controlplane
// stand on: a work queue whose workers are tasks only while they sync, and a
// client of the API. It mirrors client-go's util/workqueue and to the clients
// that kube-controller-manager builds.
//
// A controller reads the API's objects as they are (an informer's cache that is
// never behind) and hears of changes from apiserver.Server.OnChange, where it
// decides in O(1) which keys to add. What upstream shows because caches lag
// (expectations, for example) is kept only where a user sees it: a sync begins
// one watch latency after the change, and each of its requests takes its time,
// so what was read before a request is read again after it.
package controller
