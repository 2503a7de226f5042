package scenarios

import (
	"strconv"

	"github.com/drydock-sim/drydock/fakecri"
)

// NodeNames returns the names of all nodes, group by group.
func (s *Scenario) NodeNames() []string {
	var out []string
	for i := range s.Spec.Nodes {
		out = append(out, s.Spec.Nodes[i].NodeNames()...)
	}
	return out
}

// NodeNames returns the names of the group's nodes: name-0, name-1 and so on,
// or just the name if the group has no count.
func (g *NodeGroup) NodeNames() []string {
	if g.Count == nil {
		return []string{g.Name}
	}
	var out []string
	for i := range *g.Count {
		out = append(out, g.Name+"-"+strconv.Itoa(i))
	}
	return out
}

// SelectNodes returns the nodes that a selection selects, in the order of the
// scenario's nodes, each once. An empty selection selects none.
func (s *Scenario) SelectNodes(sel Nodes) []string {
	if len(sel) == 0 {
		return nil
	}
	var out []string
	for _, name := range s.NodeNames() {
		for _, pattern := range sel {
			if fakecri.MatchPattern(pattern, name) {
				out = append(out, name)
				break
			}
		}
	}
	return out
}
