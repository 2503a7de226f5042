package clients

import (
	"testing"

	"github.com/drydock-sim/drydock/up"
)

// start starts a cluster of two nodes for a test, ten times as fast as life.
func start(t *testing.T) *up.Cluster {
	t.Helper()
	cluster, err := up.Start(t.Context(), up.Options{Nodes: 2, Speed: 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Errorf("the cluster ended with %v", err)
		}
	})
	return cluster
}
