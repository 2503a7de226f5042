package clientgo

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// podStatusPatch names the pod's UID, so that a namesake is not written to
// (pkg/util/pod, PatchPodStatus).
func podStatusPatch(uid types.UID, base, status *v1.PodStatus) ([]byte, error) {
	return twoWayPatch(&v1.Pod{Status: *base}, &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Status: *status}, &v1.Pod{})
}

// nodeStatusPatch holds the difference of labels, annotations and status. The
// addresses are merged by type alone, so two of one type would become one;
// where they differ the whole list is replaced, as upstream does
// (component-helpers, node/util).
func nodeStatusPatch(base, node *v1.Node) ([]byte, error) {
	n := *node
	n.Spec = base.Spec
	n.ManagedFields = base.ManagedFields
	patch, err := twoWayPatch(base, &n, &v1.Node{})
	if err != nil || !addressesDiffer(base.Status.Addresses, n.Status.Addresses) {
		return patch, err
	}
	var m map[string]any
	if err := json.Unmarshal(patch, &m); err != nil {
		return nil, err
	}
	status, ok := m["status"].(map[string]any)
	if !ok {
		return patch, nil
	}
	list := make([]any, 0, len(n.Status.Addresses)+1)
	for _, a := range n.Status.Addresses {
		list = append(list, map[string]any{"type": string(a.Type), "address": a.Address})
	}
	status["addresses"] = append(list, map[string]any{"$patch": "replace"})
	delete(status, "$setElementOrder/addresses")
	return json.Marshal(m)
}

// addressesDiffer compares in order, since the order of addresses says which is
// preferred.
func addressesDiffer(a, b []v1.NodeAddress) bool {
	if len(a) != len(b) {
		return true
	}
	for i := range a {
		if a[i] != b[i] {
			return true
		}
	}
	return false
}

// twoWayPatch is the strategic merge patch from base to changed.
func twoWayPatch(base, changed, schema any) ([]byte, error) {
	old, err := json.Marshal(base)
	if err != nil {
		return nil, err
	}
	now, err := json.Marshal(changed)
	if err != nil {
		return nil, err
	}
	return strategicpatch.CreateTwoWayMergePatch(old, now, schema)
}
