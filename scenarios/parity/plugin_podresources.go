package parity

import (
	"encoding/json"
	"strings"

	"github.com/drydock-sim/drydock/kubelet"
)

// podResources is what the pod resources API answers to List, to
// GetAllocatableResources, and to Get for each of some pods and for one that there isn't;
// nil while the kubelet has not started that far.
func podResources(k *kubelet.Kubelet, pods []string) any {
	r := k.PodResources()
	if r == nil {
		return nil
	}
	out := map[string]json.RawMessage{
		"List":                    orEmpty(protoJSON(r.List()), `{"pod_resources":[]}`),
		"GetAllocatableResources": orEmpty(protoJSON(r.GetAllocatableResources()), `{"devices":[]}`),
	}
	for _, key := range append([]string{"default/no-such"}, pods...) {
		namespace, name, _ := strings.Cut(key, "/")
		resp, err := r.Get(namespace, name)
		if err != nil {
			out["Get "+key] = encode(object{"code": "Unknown", "err": err.Error()})
			continue
		}
		out["Get "+key] = orEmpty(protoJSON(resp), "{}")
	}
	return out
}

// orEmpty is the JSON of an empty message, if there is nothing in it. The recorder left out
// what was of other cases, and then the list itself.
func orEmpty(data json.RawMessage, empty string) json.RawMessage {
	if data == nil {
		return json.RawMessage(empty)
	}
	return data
}
