package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/history"
)

// Labels of a DaemonSet's pods.
const (
	// The hash's label says of which revision a pod is.
	hashLabel       = appsv1.DefaultDaemonSetUniqueLabelKey // controller-revision-hash
	generationLabel = "pod-template-generation"
)

// step is one sync of a DaemonSet. It is made anew for each sync, because what it
// finds out holds no longer than that. cur and old are the set's revisions; old are in the order
// of their numbers.
type step struct {
	c    *Controller
	ds   *appsv1.DaemonSet
	cur  *history.Revision
	old  []*history.Revision
	hash string
	// byNo: pods by node, those that ended and are being deleted left out.
	byNo map[string][]*v1.Pod
}

// revise finds or stores the revision of the present template (constructHistory).
// Of several equal revisions one is kept, and it gets the highest number: the
// rest of the sync goes by its hash alone. Revisions are compared by the data that a patch would
// apply, so a template that is changed and changed back finds its old revision.
func (s *step) revise(ctx context.Context) error {
	h, ds := s.c.history, s.ds
	raw, err := h.Patch(ds, &ds.Spec.Template)
	if err != nil {
		return err
	}
	last := int64(0)
	var same []*history.Revision
	for _, r := range h.List(ds.UID) {
		// One that somebody else has made may lack it; its name is as good.
		if _, ok := r.Labels[hashLabel]; !ok {
			if r, err = h.Relabel(ctx, r, hashLabel, r.Name); err != nil {
				return err
			}
		}
		if history.Equal(r, raw) {
			same = append(same, r)
		} else {
			s.old = append(s.old, r)
			last = max(last, r.Revision)
		}
	}
	if len(same) == 0 {
		s.cur, err = s.snapshot(ctx, raw, last+1)
	} else if s.cur, err = s.keepOne(ctx, same); err == nil && s.cur.Revision <= last {
		_, err = h.Renumber(ctx, s.cur, last+1)
	}
	if err != nil {
		return err
	}
	s.hash = s.cur.Labels[hashLabel]
	return nil
}

// snapshot stores a new revision; when another one has its name the collision is
// counted, and the next sync tries another. The collision count goes into the hash, so the next
// try has another name. It is written to the status before the error is returned; the next sync
// reads it.
func (s *step) snapshot(ctx context.Context, raw []byte, number int64) (*history.Revision, error) {
	ds := s.ds
	hash := controller.ComputeHash(&ds.Spec.Template, ds.Status.CollisionCount)
	r := history.New(ds, ds.Spec.Template.Labels, raw, number, nil)
	delete(r.Labels, history.HashLabel)
	r.Name, r.Labels[hashLabel] = ds.Name+"-"+hash, hash
	made, err := controller.Create(ctx, s.c.API, r)
	if !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	if is, ok := controller.Lookup[*history.Revision](s.c.API, apiserver.KindControllerRevision, controller.KeyOf(r)); ok && history.Equal(is, raw) {
		return is, nil
	}
	n := int32(1)
	if c := ds.Status.CollisionCount; c != nil {
		n = *c + 1
	}
	next := *ds
	next.Status.CollisionCount = &n
	if _, e := controller.Update(ctx, s.c.API, &next, "status"); e != nil {
		return nil, e
	}
	return nil, err
}

// keepOne keeps the newest of equal revisions (dedupCurHistories). Pods that
// carry another's hash are relabelled before that one is deleted, or they would
// count as old. Doubles come about when two syncs, or two controllers, made a revision of one
// template.
func (s *step) keepOne(ctx context.Context, same []*history.Revision) (*history.Revision, error) {
	keep := same[len(same)-1]
	if len(same) == 1 {
		return keep, nil
	}
	hash := keep.Labels[hashLabel]
	for _, p := range slices.Clone(s.c.Pods().Of(s.ds.UID).All()) {
		if p.Labels[hashLabel] == hash {
			continue
		}
		err := s.c.Control.PatchMeta(ctx, p, func(m *metav1.ObjectMeta) {
			m.Labels = maps.Clone(m.Labels)
			m.Labels[hashLabel] = hash
		})
		if err != nil {
			return nil, err
		}
	}
	for _, r := range same[:len(same)-1] {
		if err := s.c.history.Delete(ctx, r); err != nil {
			return nil, err
		}
	}
	return keep, nil
}

// cleanUp deletes the oldest revisions that no pod has, beyond the limit. One
// that some pod still has is kept beyond the limit: a rollback may want to go
// back to it. s.old are sorted by number, so the oldest go first.
func (s *step) cleanUp(ctx context.Context) error {
	kill := len(s.old) - int(*s.ds.Spec.RevisionHistoryLimit)
	if kill <= 0 {
		return nil
	}
	live := map[string]bool{}
	for _, p := range s.c.Pods().Of(s.ds.UID).All() {
		live[p.Labels[hashLabel]] = true
	}
	for _, r := range s.old {
		if kill <= 0 {
			return nil
		}
		if live[r.Labels[hashLabel]] {
			continue
		}
		if err := s.c.history.Delete(ctx, r); err != nil {
			return err
		}
		kill--
	}
	return nil
}

// look sorts the set's pods by node, oldest first, those that are bound before
// those that are not. It is called again where pods may have come or gone in
// between: after each wait. A pod that ended and is being deleted no longer counts as the node's;
// else its successor would wait for the kubelet.
func (s *step) look() {
	s.byNo = map[string][]*v1.Pod{}
	for _, p := range s.c.Pods().Of(s.ds.UID).All() {
		if p.DeletionTimestamp != nil && controller.PodTerminated(p) {
			continue
		}
		if n := targetOf(p); n != "" {
			s.byNo[n] = append(s.byNo[n], p)
		}
	}
	for _, list := range s.byNo { //drydock:unordered sorts each
		if len(list) > 1 {
			slices.SortStableFunc(list, oldest)
		}
	}
}

// oldest orders pods of one node: of several, the first is the one that stays. It is upstream's
// podByCreationTimestampAndPhase: bound ones first.
func oldest(a, b *v1.Pod) int {
	if (a.Spec.NodeName != "") != (b.Spec.NodeName != "") {
		if a.Spec.NodeName != "" {
			return -1
		}
		return 1
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// available reports whether a pod has been ready for minReadySeconds.
func (s *step) available(p *v1.Pod) bool {
	return controller.PodAvailable(p, s.ds.Spec.MinReadySeconds, s.c.l.Now())
}

// updated reports whether a pod is of the present template. The generation is the
// way of before ControllerRevisions; upstream still takes either. A set without the deprecated
// annotation goes by the hash alone.
func (s *step) updated(p *v1.Pod) bool {
	gen := s.ds.Annotations[appsv1.DeprecatedTemplateGeneration]
	return s.hash != "" && p.Labels[hashLabel] == s.hash || gen != "" && p.Labels[generationLabel] == gen
}

// manage creates pods where there is none and deletes those that may not be. Nodes come in the
// order of their creation, so that of more than BurstReplicas nodes the first are served first.
func (s *step) manage(ctx context.Context) error {
	s.look()
	nodes := s.c.API.Server().Nodes()
	known := make(map[string]bool, len(nodes))
	var need, kill []string
	for _, n := range nodes {
		known[n.Name] = true
		f, pods := s.c.fit(s.ds, n), s.byNo[n.Name]
		switch {
		case f.run && len(pods) == 0:
			need = append(need, n.Name)
		case f.stay:
			// Pods are there: which of them stay, and is another needed beside
			// them?
			again, dead := s.onNode(n.Name, pods, f.run)
			kill = append(kill, dead...)
			if again {
				need = append(need, n.Name)
			}
		default:
			for _, p := range pods {
				if p.DeletionTimestamp == nil {
					kill = append(kill, p.Name)
				}
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(s.byNo)) { //drydock:unordered sorted
		for _, p := range s.byNo[n] {
			// Its affinity names a node that is gone, so it would wait for ever.
			// A bound pod is the pod garbage collector's.
			if !known[n] && p.Spec.NodeName == "" {
				kill = append(kill, p.Name)
			}
		}
	}
	return s.apply(ctx, kill, need)
}

// onNode is podsShouldBeOnNode for a node on which pods may stay. Pods that
// failed are deleted after a back-off of their node's, so that a broken image
// does not make a pod a second. Without a surge all but the oldest pod go; with
// one, an old and a new pod may be there together until the new one is available. A pod that is
// being deleted is passed over: it neither counts nor is deleted again.
func (s *step) onNode(node string, pods []*v1.Pod, run bool) (create bool, kill []string) {
	var running []*v1.Pod
	for _, p := range pods {
		switch {
		case p.DeletionTimestamp != nil:
		case p.Status.Phase == v1.PodFailed:
			key := backoffKey{s.ds.UID, s.ds.Status.ObservedGeneration, node}
			// The set comes back when the whole back-off has passed, not what is left of it, as
			// upstream.
			if wait, in := s.c.backoff.left(key); in {
				s.c.Queue.AddAfter(controller.KeyOf(s.ds), wait)
				continue
			}
			s.c.backoff.next(key)
			s.c.Control.Events.Eventf(controller.Reference(s.ds), v1.EventTypeWarning, "FailedDaemonPod", "Found failed daemon pod %s/%s on node %s, will try to kill it", p.Namespace, p.Name, node)
			kill = append(kill, p.Name)
		case p.Status.Phase == v1.PodSucceeded:
			s.c.Control.Events.Eventf(controller.Reference(s.ds), v1.EventTypeNormal, "SucceededDaemonPod", "Found succeeded daemon pod %s/%s on node %s, will try to delete it", p.Namespace, p.Name, node)
			kill = append(kill, p.Name)
		default:
			running = append(running, p)
		}
	}
	// Without a surge a second pod on a node is one too many, whichever template it is of.
	if !s.surges() {
		for i := 1; i < len(running); i++ {
			kill = append(kill, running[i].Name)
		}
		return false, kill
	}
	if len(running) <= 1 {
		return len(running) == 0 && run, kill
	}
	var newer, older *v1.Pod
	for _, p := range running {
		// Here upstream goes by the hash alone, unlike updated.
		switch is := p.Labels[hashLabel] == s.hash; {
		case is && newer == nil:
			newer = p
		case !is && older == nil:
			older = p
		default:
			kill = append(kill, p.Name)
		}
	}
	// The old one has a successor, or is of no use.
	if newer != nil && older != nil && (!controller.PodReady(older) || s.available(newer)) {
		kill = append(kill, older.Name)
	}
	return false, kill
}

// apply creates and deletes pods (syncNodes). Each pod differs from the template
// by its node affinity only, so all share one spec but for that. Both lists are
// cut to BurstReplicas: the next sync does the rest. Creation doubles the number of requests at
// once while they succeed (slow start): a quota that refuses all pods is not asked 250 times.
func (s *step) apply(ctx context.Context, kill, need []string) error {
	ds, c := s.ds, s.c
	kill, need = kill[:min(len(kill), BurstReplicas)], need[:min(len(need), BurstReplicas)]
	var errs []error
	if len(need) > 0 {
		t := s.template()
		_, err := controller.SlowStart(ctx, c.Group, "daemonset creates", len(need), func(ctx context.Context, i int) error {
			_, err := c.Control.Create(ctx, ds, t, apiserver.Stamp{Affinity: affinityTo(t.Spec.Affinity, need[i])})
			// The set goes with its namespace.
			if apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
				return nil
			}
			return err
		})
		if err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, controller.Parallel(ctx, c.Group, "daemonset deletes", len(kill), func(ctx context.Context, i int) error {
		return ignoreGone(c.Control.Delete(ctx, ds, kill[i]))
	})...)
	return errors.Join(errs...)
}

// template is the set's with what all of its pods have besides. Maps are cloned, since the set's
// own are shared with everyone who reads it.
func (s *step) template() *v1.PodTemplateSpec {
	t := s.ds.Spec.Template
	t.Spec.Tolerations = tolerationsOf(&t.Spec)
	t.Labels = maps.Clone(t.Labels)
	if gen := s.ds.Annotations[appsv1.DeprecatedTemplateGeneration]; gen != "" {
		t.Labels[generationLabel] = gen
	}
	t.Labels[hashLabel] = s.hash
	return &t
}

// scaled is maxSurge or maxUnavailable for n nodes, rounded up. Of a strategy OnDelete nothing is
// allowed.
func (s *step) scaled(of func(*appsv1.RollingUpdateDaemonSet) *intstr.IntOrString, n int) int {
	u := &s.ds.Spec.UpdateStrategy
	if u.Type != appsv1.RollingUpdateDaemonSetStrategyType || u.RollingUpdate == nil || of(u.RollingUpdate) == nil {
		return 0
	}
	v, err := intstr.GetScaledValueFromIntOrPercent(of(u.RollingUpdate), n, true)
	if err != nil {
		return 0 // validation has refused it
	}
	return v
}

// surge and unavailable are what scaled may ask for.
func surge(r *appsv1.RollingUpdateDaemonSet) *intstr.IntOrString       { return r.MaxSurge }
func unavailable(r *appsv1.RollingUpdateDaemonSet) *intstr.IntOrString { return r.MaxUnavailable }

// surges reports whether new pods come beside old ones.
func (s *step) surges() bool { return s.scaled(surge, 1) > 0 }

// numbers are the counts of a status. They are compared as one value, because a
// status is written only if one differs. They are in the order of the status' fields.
type numbers struct{ desired, current, misscheduled, ready, updated, available, unavailable int32 }

func numbersOf(st *appsv1.DaemonSetStatus) numbers {
	return numbers{st.DesiredNumberScheduled, st.CurrentNumberScheduled, st.NumberMisscheduled, st.NumberReady, st.UpdatedNumberScheduled, st.NumberAvailable, st.NumberUnavailable}
}

func (n numbers) apply(st *appsv1.DaemonSetStatus) {
	st.DesiredNumberScheduled, st.CurrentNumberScheduled, st.NumberMisscheduled, st.NumberReady = n.desired, n.current, n.misscheduled, n.ready
	st.UpdatedNumberScheduled, st.NumberAvailable, st.NumberUnavailable = n.updated, n.available, n.unavailable
}

// count is updateDaemonSetStatus. Of several pods on a node the first counts. A
// node that a set should not be on counts as misscheduled even if its pod is on
// the way out. A pod counts as ready on a node where the set should run, never on a misplaced
// one.
func (s *step) count() numbers {
	s.look()
	var n numbers
	for _, node := range s.c.API.Server().Nodes() {
		pods := s.byNo[node.Name]
		if !s.c.fit(s.ds, node).run {
			if len(pods) > 0 {
				n.misscheduled++
			}
			continue
		}
		n.desired++
		if len(pods) == 0 {
			continue
		}
		n.current++
		p := pods[0]
		if controller.PodReady(p) {
			n.ready++
			if s.available(p) {
				n.available++
			}
		}
		if s.updated(p) {
			n.updated++
		}
	}
	n.unavailable = n.desired - n.available
	return n
}

// checkLater looks again when pods are ready but not yet available. Unlike a
// ReplicaSet's, a DaemonSet's is looked at a whole minReadySeconds later
// (updateDaemonSetStatus). The wait is measured from now, so a pod may become available up to
// minReadySeconds before the status says so.
func (s *step) checkLater(n numbers) {
	if m := s.ds.Spec.MinReadySeconds; m > 0 && n.ready != n.available {
		s.c.Queue.AddAfter(controller.KeyOf(s.ds), time.Duration(m)*time.Second)
	}
}

// pair finds the new and the old pod on a node; false when there are two of one
// kind. Pods that are being deleted don't count as either.
func (s *step) pair(pods []*v1.Pod) (newer, older *v1.Pod, ok bool) {
	for _, p := range pods {
		if p.DeletionTimestamp != nil {
			continue
		}
		at := &older
		if s.updated(p) {
			at = &newer
		}
		if *at != nil {
			return nil, nil, false
		}
		*at = p
	}
	return newer, older, true
}

// nodesInRollout are the nodes with pods of the set and those that want one, in
// the order of their creation, then nodes that are gone. Upstream walks over a map of nodes to
// pods; its order is chance, ours is fixed.
func (s *step) nodesInRollout() (names []string, fits map[string]fit, desired int) {
	fits = map[string]fit{}
	for _, n := range s.c.API.Server().Nodes() {
		f := s.c.fit(s.ds, n)
		if f.run {
			desired++
		}
		if _, has := s.byNo[n.Name]; f.run || has {
			names = append(names, n.Name)
			fits[n.Name] = f
		}
	}
	var gone []string
	for n := range s.byNo { //drydock:unordered sorted below
		if _, ok := fits[n]; !ok {
			gone = append(gone, n)
		}
	}
	slices.SortFunc(gone, strings.Compare)
	return append(names, gone...), fits, desired
}

// rollingUpdate replaces old pods, as many at once as the strategy allows. With a
// surge of 0 an old pod is deleted and manage makes its successor in a later
// sync; with a surge the successor is made beside it (rollingUpdate in
// update.go). A maxUnavailable that rounds down to 0 counts as 1, or nothing
// would ever move. Percentages are of the nodes that the set should run on.
func (s *step) rollingUpdate(ctx context.Context) error {
	s.look()
	names, fits, desired := s.nodesInRollout()
	mostSurge, mostUnavailable := s.scaled(surge, desired), s.scaled(unavailable, desired)
	if desired > 0 && mostSurge == 0 && mostUnavailable == 0 {
		// See above: both at 0 would stand still.
		mostUnavailable = 1
	}
	if mostSurge == 0 {
		return s.apply(ctx, s.replaceable(names, mostUnavailable), nil)
	}
	return s.rollSurge(ctx, names, fits, desired, mostSurge)
}

// replaceable are the old pods to delete now: those that are unavailable anyway,
// and others as long as few enough are. A node with no pod, or with two, counts
// as down: it is in the middle of something. Deleting an unavailable pod costs nothing, so those
// go first and are not limited.
func (s *step) replaceable(names []string, most int) []string {
	down := 0
	var free, candidates []string
	for _, n := range names {
		// The node is left alone in this round.
		newer, older, ok := s.pair(s.byNo[n])
		switch {
		case !ok, older == nil && newer == nil, older != nil && newer != nil:
			down++
		case newer != nil:
			if !s.available(newer) {
				down++
			}
		case !s.available(older):
			free = append(free, older.Name)
			down++
		case down < most:
			candidates = append(candidates, older.Name)
		}
	}
	return append(free, candidates[:min(max(most-down, 0), len(candidates))]...)
}

// rollSurge makes new pods beside the old ones, and deletes an old one when its
// successor is available. Old pods that are not available are replaced without
// counting against the surge: nothing is lost by it. Those on nodes where the set
// should not run any more go as far as enough others are available. A node counts as surging
// while two pods are on it and the new one isn't available.
func (s *step) rollSurge(ctx context.Context, names []string, fits map[string]fit, desired, most int) error {
	surging, available := 0, 0
	var kill, misplaced, candidates, allowed []string
	for _, n := range names {
		newer, older, ok := s.pair(s.byNo[n])
		if !ok {
			surging++
			continue
		}
		if older != nil && s.available(older) || older == nil && newer != nil && s.available(newer) {
			available++
		}
		switch {
		case older == nil:
		case newer != nil && !s.available(newer):
			surging++
		case newer != nil:
			kill = append(kill, older.Name)
		// Upstream fails the whole rollout there, since its lister doesn't find the node; so does
		// this.
		case fits[n] == fit{} && s.c.API.Server().Node(n) == nil:
			return fmt.Errorf("couldn't get node for nodeName %q: %w", n, apierrors.NewNotFound(v1.Resource("nodes"), n))
		case !s.available(older):
			if fits[n].run {
				allowed = append(allowed, n)
			} else {
				kill = append(kill, older.Name)
			}
		case !fits[n].run:
			misplaced = append(misplaced, older.Name)
		case surging < most:
			candidates = append(candidates, n)
		}
	}
	// Misplaced pods serve although they should not be there, so they go last.
	kill = append(kill, misplaced[:min(max(available-desired, 0), len(misplaced))]...)
	create := append(allowed, candidates[:min(max(most-surging, 0), len(candidates))]...)
	return s.apply(ctx, kill, create)
}
