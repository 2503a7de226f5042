package plugin

import (
	"time"

	"github.com/drydock-sim/drydock/kubelet/internal/credentialprovider"
)

const (
	// globalKey is no image's name, nor a registry's.
	globalKey = "<global>"
	// purgePeriod is how often answers are looked for that nobody asks for again.
	purgePeriod = 15 * time.Minute
)

// cacheKey is what an answer is kept under: an image, a registry or globalKey, and
// whose token it was given for (identity.key).
type cacheKey struct{ base, identity string }

type cached struct {
	config  credentialprovider.DockerConfig
	expires time.Time
}

// cache is a plugin's answers until they expire.
type cache struct {
	entries map[cacheKey]cached // nil: none yet
	purged  time.Time
}

// get returns the answer under the first of the bases that has one. One that expires
// now is good.
func (c *cache) get(now time.Time, bases []string, identity string) (credentialprovider.DockerConfig, bool) {
	if now.After(c.purged.Add(purgePeriod)) {
		for k, e := range c.entries { //drydock:unordered deletes what matches
			if now.After(e.expires) {
				delete(c.entries, k)
			}
		}
		c.purged = now
	}
	for _, base := range bases {
		k := cacheKey{base, identity}
		e, ok := c.entries[k]
		switch {
		case !ok:
		case now.After(e.expires):
			delete(c.entries, k)
		default:
			return e.config, true
		}
	}
	return nil, false
}

func (c *cache) put(k cacheKey, config credentialprovider.DockerConfig, expires time.Time) {
	if c.entries == nil {
		c.entries = map[cacheKey]cached{}
	}
	c.entries[k] = cached{config, expires}
}
