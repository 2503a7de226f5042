package deployment

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drydock-sim/drydock/ground/lists"
)

// Annotations of ReplicaSets (pkg/controller/deployment/util).
const (
	revisionAnnotation        = "deployment.kubernetes.io/revision"
	revisionHistoryAnnotation = "deployment.kubernetes.io/revision-history"
	desiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas"
	maxReplicasAnnotation     = "deployment.kubernetes.io/max-replicas"
)

// maxHistoryLength is how long the annotation of former revisions gets.
const maxHistoryLength = 2000

// own reports whether an annotation is the controller's, and not copied between a
// Deployment and its ReplicaSets.
func own(key string) bool {
	switch key {
	case v1.LastAppliedConfigAnnotation, revisionAnnotation, revisionHistoryAnnotation, desiredReplicasAnnotation, maxReplicasAnnotation, appsv1.DeprecatedRollbackTo:
		return true
	}
	return false
}

// without and with return changed copies: maps of stored objects are never
// written to.
func without(m map[string]string, key string) map[string]string {
	out := maps.Clone(m)
	delete(out, key)
	return out
}

func with(m map[string]string, key, value string) map[string]string {
	out := make(map[string]string, len(m)+1)
	maps.Copy(out, m)
	out[key] = value
	return out
}

// sameTemplate compares templates but for the hash label. That label is the
// controller's own and stands in no Deployment (EqualIgnoreHash).
func sameTemplate(a, b *v1.PodTemplateSpec) bool {
	x, y := *a, *b
	x.Labels, y.Labels = without(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey), without(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(&x, &y)
}

// revisionOf is a ReplicaSet's revision; 0 for none. It is an annotation, so a
// user may have written anything; the error says so.
func revisionOf(rs *appsv1.ReplicaSet) (int64, error) {
	text, ok := rs.Annotations[revisionAnnotation]
	if !ok {
		return 0, nil
	}
	return strconv.ParseInt(text, 10, 64)
}

// maxRevision is the highest revision that can be read.
func maxRevision(list []*appsv1.ReplicaSet) int64 {
	n := int64(0)
	for _, rs := range list {
		if v, err := revisionOf(rs); err == nil {
			n = max(n, v)
		}
	}
	return n
}

// lastRevision is the one before the newest; 0 for none.
func lastRevision(list []*appsv1.ReplicaSet) int64 {
	newest, last := int64(0), int64(0)
	for _, rs := range list {
		switch v, err := revisionOf(rs); {
		case err != nil:
		case v >= newest:
			newest, last = v, newest
		case v > last:
			last = v
		}
	}
	return last
}

// setNewAnnotations brings the annotations of the newest ReplicaSet up to date
// (SetNewReplicaSetAnnotations). It reports whether that changed any. A revision
// only grows. The one that it had goes to the history, which kubectl shows.
func setNewAnnotations(d *appsv1.Deployment, rs *appsv1.ReplicaSet, revision int64, exists bool) bool {
	changed := false
	a := map[string]string{}
	maps.Copy(a, rs.Annotations)
	for k, v := range d.Annotations { //drydock:unordered copies a map
		if is, ok := a[k]; !own(k) && (!ok || is != v) {
			a[k] = v
			changed = true
		}
	}
	rs.Annotations = a
	was, had := a[revisionAnnotation]
	old, err := strconv.ParseInt(was, 10, 64)
	if err != nil {
		if was != "" {
			return false
		}
		old = 0
	}
	if old < revision {
		a[revisionAnnotation] = strconv.FormatInt(revision, 10)
		changed = true
	}
	if had && old < revision {
		addHistory(a, was)
	}
	if !exists && setReplicasAnnotations(rs, d) {
		changed = true
	}
	return changed
}

// addHistory adds a former revision; the oldest go where they get too many.
func addHistory(a map[string]string, revision string) {
	history := a[revisionHistoryAnnotation]
	if history == "" {
		a[revisionHistoryAnnotation] = revision
		return
	}
	parts := strings.Split(history, ",")
	length, start := len(history)+len(revision)+1, 0
	for length > maxHistoryLength && start < len(parts) {
		length -= len(parts[start]) + 1
		start++
	}
	if length <= maxHistoryLength {
		a[revisionHistoryAnnotation] = strings.Join(append(parts[start:], revision), ",")
	}
}

// setReplicasAnnotations notes what the Deployment wants, in a map of the
// ReplicaSet's own. It reports whether that changed anything.
func setReplicasAnnotations(rs *appsv1.ReplicaSet, d *appsv1.Deployment) bool {
	desired := strconv.Itoa(int(*d.Spec.Replicas))
	most := strconv.Itoa(int(*d.Spec.Replicas + maxSurge(d)))
	if rs.Annotations != nil && rs.Annotations[desiredReplicasAnnotation] == desired && rs.Annotations[maxReplicasAnnotation] == most {
		return false
	}
	rs.Annotations = with(with(rs.Annotations, desiredReplicasAnnotation, desired), maxReplicasAnnotation, most)
	return true
}

// annotationsOf returns what a rollback to rs makes of the Deployment's annotations.
func annotationsOf(d *appsv1.Deployment, rs *appsv1.ReplicaSet) map[string]string {
	out := map[string]string{}
	for k, v := range d.Annotations { //drydock:unordered copies a map
		if own(k) {
			out[k] = v
		}
	}
	for k, v := range rs.Annotations { //drydock:unordered copies a map
		if !own(k) {
			out[k] = v
		}
	}
	return out
}

// number reads an annotation that holds a count.
func number(rs *appsv1.ReplicaSet, key string) (int32, bool) {
	n, err := strconv.ParseUint(rs.Annotations[key], 10, 31)
	return int32(n), err == nil
}

// isRolling reports whether the strategy is RollingUpdate.
func isRolling(d *appsv1.Deployment) bool {
	return d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType
}

// fenceposts are the surge, rounded up, and how many may be unavailable, rounded
// down; never both 0. Were both 0, no rollout could begin (ResolveFenceposts).
func fenceposts(d *appsv1.Deployment) (surge, unavailable int32) {
	r := d.Spec.Strategy.RollingUpdate
	n := int(*d.Spec.Replicas)
	s, err := intstr.GetScaledValueFromIntOrPercent(r.MaxSurge, n, true)
	if err != nil {
		return 0, 0 // validation has refused it
	}
	u, err := intstr.GetScaledValueFromIntOrPercent(r.MaxUnavailable, n, false)
	if err != nil {
		return 0, 0
	}
	if s == 0 && u == 0 {
		u = 1
	}
	return int32(s), int32(u)
}

// maxSurge is how many pods there may be more than wanted.
func maxSurge(d *appsv1.Deployment) int32 {
	if !isRolling(d) {
		return 0
	}
	surge, _ := fenceposts(d)
	return surge
}

// maxUnavailable is how many of those wanted may be missing.
func maxUnavailable(d *appsv1.Deployment) int32 {
	if !isRolling(d) || *d.Spec.Replicas == 0 {
		return 0
	}
	_, n := fenceposts(d)
	return min(n, *d.Spec.Replicas)
}

// active returns the ReplicaSets that want pods.
func active(list []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	return lists.Filter(list, func(rs *appsv1.ReplicaSet) bool { return *rs.Spec.Replicas > 0 })
}

// byAge orders by creation, and by name within a second.
func byAge(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// bySizeOlder and bySizeNewer put the largest first; of equals the older or the
// newer.
func bySizeOlder(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(cmp.Compare(*b.Spec.Replicas, *a.Spec.Replicas), byAge(a, b))
}

func bySizeNewer(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(cmp.Compare(*b.Spec.Replicas, *a.Spec.Replicas), byAge(b, a))
}

// byRevision puts the oldest revision first, and goes by age where one can't be
// read.
func byRevision(a, b *appsv1.ReplicaSet) int {
	x, err1 := revisionOf(a)
	y, err2 := revisionOf(b)
	if err1 != nil || err2 != nil || x == y {
		return byAge(a, b)
	}
	return cmp.Compare(x, y)
}

// sum adds up a number of each ReplicaSet.
func sum(list []*appsv1.ReplicaSet, of func(*appsv1.ReplicaSet) int32) int32 {
	n := int32(0)
	for _, rs := range list {
		n += of(rs)
	}
	return n
}

// The numbers that sum adds up.
func wanted(rs *appsv1.ReplicaSet) int32    { return *rs.Spec.Replicas }
func actual(rs *appsv1.ReplicaSet) int32    { return rs.Status.Replicas }
func ready(rs *appsv1.ReplicaSet) int32     { return rs.Status.ReadyReplicas }
func available(rs *appsv1.ReplicaSet) int32 { return rs.Status.AvailableReplicas }

// sorted returns a sorted copy.
func sorted(list []*appsv1.ReplicaSet, by func(a, b *appsv1.ReplicaSet) int) []*appsv1.ReplicaSet {
	out := slices.Clone(list)
	slices.SortStableFunc(out, by)
	return out
}
