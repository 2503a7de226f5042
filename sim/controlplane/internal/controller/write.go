package controller

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/dump"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// kindOf returns what the API knows of an object's kind.
func kindOf(api *apiserver.Component, obj apiserver.Object) *apiserver.KindInfo {
	return api.Server().Store().Kinds().Of(obj)
}

// Create creates an object and returns it as stored.
func Create[T apiserver.Object](ctx context.Context, api *apiserver.Component, obj T) (made T, err error) {
	err = api.Do(ctx, apiserver.Request{Verb: "create", Resource: kindOf(api, obj).Resource, Namespace: obj.GetNamespace(), Name: obj.GetName()}, func(s *apiserver.Server) error {
		o, err := s.Create(obj)
		if err == nil {
			made = o.(T)
		}
		return err
	})
	return made, err
}

// Update replaces an object, or what a subresource ("status") selects of it, and
// returns it as stored. obj carries the resource version that it was made from.
func Update[T apiserver.Object](ctx context.Context, api *apiserver.Component, obj T, sub string) (made T, err error) {
	resource := kindOf(api, obj).Resource
	if sub != "" {
		resource += "/" + sub
	}
	err = api.Do(ctx, apiserver.Request{Verb: "update", Resource: resource, Namespace: obj.GetNamespace(), Name: obj.GetName()}, func(s *apiserver.Server) error {
		o, err := s.Update(obj, sub)
		if err == nil {
			made = o.(T)
		}
		return err
	})
	return made, err
}

// Delete deletes an object.
func Delete(ctx context.Context, api *apiserver.Component, obj apiserver.Object, opts metav1.DeleteOptions) error {
	k := kindOf(api, obj)
	return api.Do(ctx, apiserver.Request{Verb: "delete", Resource: k.Resource, Namespace: obj.GetNamespace(), Name: obj.GetName()}, func(s *apiserver.Server) error {
		return s.Delete(k.Kind, obj.GetNamespace(), obj.GetName(), opts)
	})
}

// Get asks the API for an object, past what is known already.
func Get[T apiserver.Object](ctx context.Context, api *apiserver.Component, k apiserver.Kind, key Key) (obj T, err error) {
	err = api.Do(ctx, apiserver.Request{Verb: "get", Resource: api.Server().Store().Kinds().Find(k).Resource, Namespace: key.Namespace, Name: key.Name}, func(s *apiserver.Server) error {
		o, err := s.Get(k, key.Namespace, key.Name)
		if err == nil {
			obj = o.(T)
		}
		return err
	})
	return obj, err
}

// Lookup returns an object of type T from the API's state; false when there is none.
func Lookup[T apiserver.Object](api *apiserver.Component, k apiserver.Kind, key Key) (T, bool) {
	obj, ok := api.Server().Store().Lookup(k, key.Namespace, key.Name).(T)
	return obj, ok
}

// Gone reports whether an object is no longer there; another one of its name is
// another object. What a sync keeps of an object it has to drop when the object
// went during the sync's waits.
func Gone(api *apiserver.Component, obj apiserver.Object) bool {
	is := api.Server().Store().Lookup(kindOf(api, obj).Kind, obj.GetNamespace(), obj.GetName())
	return is == nil || is.GetUID() != obj.GetUID()
}

// WireTime is a time as it is in objects: whole seconds, UTC.
func WireTime(t time.Time) metav1.Time { return metav1.Time{Time: t.UTC().Truncate(time.Second)} }

// ComputeHash is the hash that upstream calls a pod template by
// (pkg/controller/controller_utils.go). It is fnv32a over the template's dump,
// and over the collision count in eight bytes, so names of ReplicaSets are those
// of a real cluster.
func ComputeHash(t *v1.PodTemplateSpec, collisions *int32) string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%v", dump.ForHash(*t))
	if collisions != nil {
		var b [8]byte
		binary.LittleEndian.PutUint32(b[:], uint32(*collisions))
		h.Write(b[:])
	}
	return SafeEncode(fmt.Sprint(h.Sum32()))
}

// SafeEncode spells a number in letters that make no words (apimachinery
// util/rand SafeEncodeString).
func SafeEncode(text string) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	b := []byte(text)
	for i := range b {
		b[i] = alphabet[int(b[i])%len(alphabet)]
	}
	return string(b)
}

// PodAvailable reports whether a pod has been ready for minReady seconds.
func PodAvailable(p *v1.Pod, minReady int32, now time.Time) bool {
	c := readyCondition(p)
	if c == nil || c.Status != v1.ConditionTrue {
		return false
	}
	if minReady == 0 {
		return true
	}
	return !c.LastTransitionTime.IsZero() && !c.LastTransitionTime.Add(time.Duration(minReady)*time.Second).After(now)
}

// NextAvailable returns when the first of the pods will have been ready for
// minReady seconds, from now on; false when none is on its way there.
func NextAvailable(pods []*v1.Pod, minReady int32, now time.Time) (time.Duration, bool) {
	var first time.Duration
	for _, p := range pods {
		c := readyCondition(p)
		if minReady <= 0 || c == nil || c.Status != v1.ConditionTrue || c.LastTransitionTime.IsZero() {
			continue
		}
		if d := c.LastTransitionTime.Add(time.Duration(minReady) * time.Second).Sub(now); d > 0 && (first == 0 || d < first) {
			first = d
		}
	}
	return first, first > 0
}
