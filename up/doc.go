// Package up serves a simulated cluster to real clients: kubectl, client-go, Helm. It is
// `drydock up`, and for tests what envtest is, with nodes on which pods run:
//
//	cluster, err := up.Start(ctx, up.Options{Nodes: 3, Speed: 10})
//	defer cluster.Stop()
//	clients := kubernetes.NewForConfigOrDie(cluster.Config())
//
// The cluster is a scenario's, or a number of equal nodes. Its time follows the wall
// clock at any speed (loop.Pacer), stands still, or is stepped through. The API is
// served by sim/facade over TLS on an address of the loopback.
//
//   - up.go: a cluster's beginning and end
//   - server.go: what of HTTP is let in: hosts, origins, sizes, times
//   - certificates.go: the authority and the certificate of one run
//   - kubeconfig.go: how clients find the cluster
//   - control.go: pausing, stepping, faults; client.go: asking for them
package up
