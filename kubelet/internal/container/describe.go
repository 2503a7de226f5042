package container

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Describe says what the cache's version stands for: what Get returns.
func (c *Cache) Describe(g *loop.Group) {
	g.Describe(&c.version, "pod cache", func() uint64 {
		h := fnv.New64a()
		for _, uid := range slices.Sorted(maps.Keys(c.entries)) { //drydock:unordered sorted
			fmt.Fprintf(h, "%s %p %v\n", uid, c.entries[uid].status, c.entries[uid].err)
		}
		return h.Sum64()
	})
}
