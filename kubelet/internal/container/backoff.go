package container

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// BackoffExpiry is how long after the last step of a series the series is
// forgotten.
const BackoffExpiry = 10 * time.Minute

// The back-off of container restarts and image pulls before configuration.
const (
	BackoffBase = 10 * time.Second
	BackoffMax  = 5 * time.Minute
)

// Backoff keeps series of growing delays by key. It knows no clock: the time
// is passed in. It mirrors client-go's util/flowcontrol.Backoff with the
// expiry that the kubelet gives it.
type Backoff struct {
	base, max time.Duration
	entries   map[uint64]backoffEntry
}

type backoffEntry struct {
	delay time.Duration
	last  int64 // of the last step
}

// NewBackoff returns a Backoff whose delays begin with base and double up to
// max; a max below base lowers base to it.
func NewBackoff(base, max time.Duration) *Backoff {
	return &Backoff{base: min(base, max), max: max}
}

// Delay returns the present delay of a key, 0 if there is none.
func (b *Backoff) Delay(key uint64) time.Duration { return b.entries[key].delay }

// Next takes a step: the delay becomes base if the key is new, or if its last
// step was more than BackoffExpiry before event; else it doubles.
func (b *Backoff) Next(key uint64, event, now time.Time) {
	e, ok := b.entries[key]
	if !ok || expired(e, event) {
		e.delay = b.base
	} else {
		e.delay = min(2*e.delay, b.max)
	}
	e.last = now.UnixNano()
	if b.entries == nil {
		b.entries = map[uint64]backoffEntry{}
	}
	b.entries[key] = e
}

// InBackOffSince reports whether now is less than the key's delay after event.
func (b *Backoff) InBackOffSince(key uint64, event, now time.Time) bool {
	e, ok := b.entries[key]
	return ok && !expired(e, event) && now.Sub(event) < e.delay
}

// InBackOffSinceUpdate reports whether now is less than the key's delay after
// its last step.
func (b *Backoff) InBackOffSinceUpdate(key uint64, now time.Time) bool {
	e, ok := b.entries[key]
	return ok && !expired(e, now) && time.Duration(now.UnixNano()-e.last) < e.delay
}

// Has reports whether the key has an entry.
func (b *Backoff) Has(key uint64) bool {
	_, ok := b.entries[key]
	return ok
}

// GC forgets the entries whose last step was more than BackoffExpiry ago.
func (b *Backoff) GC(now time.Time) {
	//drydock:unordered each entry is judged alone
	for k, e := range b.entries {
		if expired(e, now) {
			delete(b.entries, k)
		}
	}
}

func expired(e backoffEntry, event time.Time) bool {
	return time.Duration(event.UnixNano()-e.last) > BackoffExpiry
}

// CrashLoopKey is the key of a container's restarts: another image or other
// resources begin another series.
func CrashLoopKey(pod *v1.Pod, c *v1.Container) uint64 {
	h := fnv64(fnvOffset64, pod.Name)
	h = fnv64(h, pod.Namespace)
	h = fnv64(h, string(pod.UID))
	h = fnv64(h, c.Name)
	h = fnv64(h, c.Image)
	return h ^ mixResources(c.Resources.Requests, 1) ^ mixResources(c.Resources.Limits, 2)
}

// mixResources is a hash of a list that doesn't depend on its order.
func mixResources(rl v1.ResourceList, salt uint64) uint64 {
	var sum uint64
	//drydock:unordered the sum doesn't depend on the order
	for name, q := range rl {
		h := fnv64(fnvOffset64^salt, string(name))
		h = (h ^ uint64(q.Value())) * fnvPrime64
		h = (h ^ uint64(q.MilliValue())) * fnvPrime64
		sum += h ^ h>>29
	}
	return sum * fnvPrime64
}

const (
	fnvOffset64 = 14695981039346656037
	fnvPrime64  = 1099511628211
)

// fnv64 continues an FNV-1a with s and a closing slash.
func fnv64(h uint64, s string) uint64 {
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * fnvPrime64
	}
	return (h ^ '/') * fnvPrime64
}

// ImagePullKey is the key of a pod's pulls of one image.
func ImagePullKey(pod *v1.Pod, image string) uint64 {
	return fnv64(fnv64(fnvOffset64, string(pod.UID)), image)
}
