package running

import (
	"fmt"

	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/scenarios/result"
)

// Check makes a scenario's cluster with one node of each group, and drops it again: what a run
// would refuse before it begins is refused. Loading has checked all else.
func Check(s *document.Scenario) error {
	small := *s
	small.Spec.Expect = nil
	small.Spec.Nodes = append([]document.NodeGroup{}, s.Spec.Nodes...)
	for i := range small.Spec.Nodes {
		if g := &small.Spec.Nodes[i]; g.Count != nil {
			g.Count = new(min(*g.Count, 1))
		}
	}
	p := &performance{s: &small, seed: s.Spec.Seed, steady: -1, endless: true, result: &result.Result{}}
	err := p.build()
	if p.cluster != nil {
		p.cluster.Close()
	}
	if err != nil {
		return fmt.Errorf("scenario %s: %w", s.Metadata.Name, err)
	}
	return nil
}
