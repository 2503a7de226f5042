package status

import (
	lru "container/list"

	"k8s.io/apimachinery/pkg/types"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// maxReasons bounds the reason cache; the least recently used entry goes.
const maxReasons = 1000

// Reasons remembers why containers could not be started
// (pkg/kubelet/reason_cache.go). Its entries outlive their pods.
type Reasons struct {
	byKey map[reasonKey]*lru.Element
	order *lru.List // of *reasonEntry, most recently used first
}

type reasonKey struct {
	uid  types.UID
	name string
}

type reasonEntry struct {
	key     reasonKey
	err     error
	message string
}

// NewReasons returns an empty cache.
func NewReasons() *Reasons {
	return &Reasons{byKey: map[reasonKey]*lru.Element{}, order: lru.New()}
}

// Update notes the results of starting a pod's containers; other actions leave
// no reason.
func (c *Reasons) Update(uid types.UID, result *kubecontainer.PodSyncResult) {
	for _, r := range result.SyncResults {
		if r.Action != kubecontainer.StartContainer {
			continue
		}
		if r.Error != nil {
			c.add(reasonKey{uid, r.Target}, r.Error, r.Message)
		} else {
			c.remove(reasonKey{uid, r.Target})
		}
	}
}

func (c *Reasons) add(k reasonKey, err error, message string) {
	if e := c.byKey[k]; e != nil {
		c.order.MoveToFront(e)
		v := e.Value.(*reasonEntry)
		v.err, v.message = err, message
		return
	}
	c.byKey[k] = c.order.PushFront(&reasonEntry{k, err, message})
	if c.order.Len() > maxReasons {
		last := c.order.Back()
		delete(c.byKey, last.Value.(*reasonEntry).key)
		c.order.Remove(last)
	}
}

func (c *Reasons) remove(k reasonKey) {
	if e := c.byKey[k]; e != nil {
		c.order.Remove(e)
		delete(c.byKey, k)
	}
}

// Get returns why a container could not be started the last time.
func (c *Reasons) Get(uid types.UID, name string) (reason error, message string, ok bool) {
	e := c.byKey[reasonKey{uid, name}]
	if e == nil {
		return nil, "", false
	}
	c.order.MoveToFront(e)
	v := e.Value.(*reasonEntry)
	return v.err, v.message, true
}
