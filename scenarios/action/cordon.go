package action

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Cordon marks nodes as unschedulable, as kubectl cordon does.
type Cordon struct{ OnNodes }

// Do marks them one after another; a node that the API does not have ends it.
func (a *Cordon) Do(s Stage) error { return cordon(s, a.Node.Select(s.Nodes()), true) }

// cordon marks nodes as unschedulable, or as schedulable again.
func cordon(s Stage, nodes []string, on bool) error {
	api, verb := s.Cluster().API(), map[bool]string{true: "cordon", false: "uncordon"}[on]
	for _, name := range nodes {
		note(s, "node "+name, verb)
		n := api.Node(name)
		if n == nil {
			return fmt.Errorf("%s: the API has no node %s", verb, name)
		}
		if n.Spec.Unschedulable == on {
			continue // kubectl: already cordoned
		}
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"unschedulable": map[bool]any{true: true}[on]}})
		if err == nil {
			_, err = api.Patch(apiserver.KindNode, "", name, types.MergePatchType, patch, "")
		}
		if err != nil {
			return fmt.Errorf("%s of node %s: %w", verb, name, err)
		}
	}
	return nil
}
