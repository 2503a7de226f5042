// Package fieldpath reads the fields of a pod that the downward API shows, in
// environment variables and in volumes. It mirrors upstream's pkg/fieldpath
// and to the parts of pkg/apis/core/pods and pkg/api/v1/resource that the
// kubelet uses for it.
package fieldpath

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// FormatMap writes a map as the downward API does: a line key="escaped value"
// for each entry, sorted, without a newline at the end.
func FormatMap(m map[string]string) string {
	lines := make([]string, 0, len(m))
	for k, v := range m { //drydock:unordered sorted below
		lines = append(lines, k+"="+strconv.Quote(v))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// ExtractFieldPathAsString returns the value of a field of the pod's metadata:
// metadata.name, namespace, uid, labels and annotations, the last two also with
// a subscript (metadata.labels['app']); a key that is missing reads as "".
func ExtractFieldPathAsString(pod *v1.Pod, fieldPath string) (string, error) {
	if path, key, ok := SplitMaybeSubscriptedPath(fieldPath); ok {
		switch path {
		case "metadata.annotations":
			return pod.Annotations[key], nil
		case "metadata.labels":
			return pod.Labels[key], nil
		default:
			return "", fmt.Errorf("fieldPath %q does not support subscript", fieldPath)
		}
	}
	switch fieldPath {
	case "metadata.annotations":
		return FormatMap(pod.Annotations), nil
	case "metadata.labels":
		return FormatMap(pod.Labels), nil
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	}
	return "", fmt.Errorf("unsupported fieldPath: %v", fieldPath)
}

// SplitMaybeSubscriptedPath splits "path['key']" into path and key; ok is
// false, and the path comes back whole, if it is no such thing.
func SplitMaybeSubscriptedPath(fieldPath string) (path, key string, ok bool) {
	inner, found := strings.CutSuffix(fieldPath, "']")
	if !found {
		return fieldPath, "", false
	}
	path, key, found = strings.Cut(inner, "['")
	if !found || path == "" {
		return fieldPath, "", false
	}
	return path, key, true
}

// ConvertDownwardAPIFieldLabel checks the name of a field for an environment
// variable and returns the one that is current. An empty version is v1, as the
// API would have it.
func ConvertDownwardAPIFieldLabel(version, label string) (string, error) {
	if version != "" && version != "v1" {
		return "", fmt.Errorf("unsupported pod version: %s", version)
	}
	if path, _, ok := SplitMaybeSubscriptedPath(label); ok {
		switch path {
		case "metadata.annotations", "metadata.labels":
			return label, nil
		}
		return "", fmt.Errorf("field label does not support subscript: %s", label)
	}
	switch label {
	case "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
		"spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "spec.schedulerName",
		"status.phase", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs":
		return label, nil
	case "spec.host":
		return "spec.nodeName", nil
	}
	return "", fmt.Errorf("field label not supported: %s", label)
}
