package status

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Describe says what the manager's version stands for: the cached statuses, by what
// they say. The same in other memory is no change.
func (m *Manager) Describe(g *loop.Group) {
	texts := map[*v1.PodStatus][]byte{} // statuses are never written to
	g.Describe(&m.version, "statuses", func() uint64 {
		h, now := fnv.New64a(), make(map[*v1.PodStatus][]byte, len(m.pods))
		for _, uid := range slices.Sorted(maps.Keys(m.pods)) { //drydock:unordered sorted
			status := m.pods[uid].status
			text, ok := texts[status]
			if !ok {
				text, _ = json.Marshal(status) // for a number only
			}
			now[status] = text
			fmt.Fprintf(h, "%s %s\n", uid, text)
		}
		texts = now
		return h.Sum64()
	})
}
