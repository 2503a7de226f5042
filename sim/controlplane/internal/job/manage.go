package job

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// removed counts deleted pods. The counts go into this sync's status before the
// deletions are heard of. Without it, the status would be right only after the next sync.
func (s *state) removed(n, ready int32) {
	s.active -= n
	s.terminating += n
	s.ready -= ready
}

// delete deletes pods; free takes their finalizers off first, so that they are
// not counted. It returns how many were deleted, and how many of those that it
// tried were ready. All deletions go out at once; the first error is returned
// when all have been answered. A pod that is gone counts as deleted.
func (s *state) delete(ctx context.Context, pods []*v1.Pod, free bool) (n, ready int32, err error) {
	for _, p := range pods {
		if controller.PodReady(p) {
			ready++
		}
	}
	errs := controller.Parallel(ctx, s.c.opts.Group, "job deletes", len(pods), func(ctx context.Context, i int) error {
		if free {
			if err := s.c.untrack(ctx, pods[i]); err != nil {
				return fmt.Errorf("removing completion finalizer: %w", err)
			}
		}
		err := s.c.control.Delete(ctx, s.job, pods[i].Name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if len(errs) > 0 {
		err = errs[0]
	}
	return int32(len(pods) - len(errs)), ready, err
}

// manage is manageJob: it deletes the pods that are too many, or creates those
// that are missing. Pods that are too many lose their finalizer before they are
// deleted: they neither succeeded nor failed. After a failure no pod is made
// until the back-off is over; with limits per index each index has its own, see
// create. Too many and too few never happen together.
func (s *state) manage(ctx context.Context, key controller.Key) error {
	j := s.job
	if suspended(j) {
		n, ready, err := s.delete(ctx, s.toRemove(int(s.active)), true)
		s.removed(n, ready)
		return err
	}
	want := *j.Spec.Parallelism
	if j.Spec.Completions != nil {
		want = max(min(*j.Spec.Completions-s.succeeded, want), 0)
	} else if s.succeeded > 0 {
		// The others run to their ends.
		want = s.active // one has succeeded: no more are started
	}
	if pods := s.toRemove(max(int(s.active-want), 0)); len(pods) > 0 {
		// The error, if any, comes after the status was counted.
		n, ready, err := s.delete(ctx, pods[:min(len(pods), maxPerSync)], true)
		s.removed(n, ready)
		return err
	}
	gone := int32(0)
	if replacesFailedOnly(j) {
		gone = s.terminating
	}
	// Terminating pods hold their places only where a replacement has to wait for
	// their end.
	missing := want - gone - s.active
	if missing <= 0 {
		return nil
	}
	if !perIndex(j) {
		// The next sync comes when the back-off is over, at least a batch later.
		if wait := s.record.left(s.c.l); wait > 0 {
			s.c.queue.AddAfter(key, max(wait, batchPeriod))
			return nil
		}
	}
	return s.create(ctx, key, int(min(missing, maxPerSync)))
}

// create makes n pods in batches of 1, 2, 4, ... The first that fails ends it;
// the sync's error brings the next. Slow start: doubling batches, so that a quota which refuses
// everything is asked a few times only.
func (s *state) create(ctx context.Context, key controller.Key, n int) error {
	j := s.job
	var indexes []int
	if indexed(j) {
		indexes = s.pendingIndexes(n)
		if perIndex(j) {
			var wait time.Duration
			if indexes, wait = s.dueIndexes(indexes); wait > 0 {
				s.c.queue.AddAfter(key, max(wait, batchPeriod))
			}
		}
		n = len(indexes)
	}
	t := podTemplate(j)
	made, err := controller.SlowStart(ctx, s.c.opts.Group, "job creates", n, func(ctx context.Context, i int) error {
		st := apiserver.Stamp{}
		if indexes != nil {
			st = s.indexStamp(t, indexes[i])
		}
		_, err := s.c.control.Create(ctx, j, t, st)
		if apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
			return nil
		}
		return err
	})
	s.active += int32(made)
	return err
}

// podTemplate is the job's template with what its pods have besides. The
// finalizer is in the template and not added to each pod, because a pod without
// it could end and go uncounted. The job's own template is shared and stays as it is.
func podTemplate(j *batchv1.Job) *v1.PodTemplateSpec {
	t := j.Spec.Template
	if !slices.Contains(t.Finalizers, batchv1.JobTrackingFinalizer) {
		t.Finalizers = append(slices.Clone(t.Finalizers), batchv1.JobTrackingFinalizer)
	}
	if indexed(j) {
		t.Spec.InitContainers, t.Spec.Containers = withIndexEnv(t.Spec.InitContainers), withIndexEnv(t.Spec.Containers)
	}
	return &t
}

// withIndexEnv gives containers the variable with their pod's index. A variable that the user has
// set stays. The value comes by the downward API from the label, so it is the same for all pods'
// specs.
func withIndexEnv(list []v1.Container) []v1.Container {
	const name = "JOB_COMPLETION_INDEX"
	out := slices.Clone(list)
	for i := range out {
		if slices.ContainsFunc(out[i].Env, func(e v1.EnvVar) bool { return e.Name == name }) {
			continue
		}
		out[i].Env = append(slices.Clone(out[i].Env), v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{
			FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels['" + batchv1.JobCompletionIndexAnnotation + "']"},
		}})
	}
	return out
}

// indexStamp is what the pod of an index has of its own. With limits per index
// the new pod carries how often its index has failed: pods are where that is
// kept. Host names let pods of a job with a headless service find each other by index.
func (s *state) indexStamp(t *v1.PodTemplateSpec, index int) apiserver.Stamp {
	text := strconv.Itoa(index)
	st := apiserver.Stamp{
		Hostname: s.job.Name + "-" + text, GenerateName: indexPrefix(s.job.Name, text),
		Labels: maps.Clone(t.Labels), Annotations: map[string]string{},
	}
	maps.Copy(st.Annotations, t.Annotations)
	st.Labels[batchv1.JobCompletionIndexAnnotation] = text
	st.Annotations[batchv1.JobCompletionIndexAnnotation] = text
	if !perIndex(s.job) {
		return st
	}
	var counted, ignored int
	// The counts go on from the failed pod that is replaced.
	if p := s.delayed[index]; p != nil {
		counted, ignored = countOf(p, batchv1.JobIndexFailureCountAnnotation), countOf(p, batchv1.JobIndexIgnoredFailureCountAnnotation)
		if _, counts, _ := matchFailure(s.job.Spec.PodFailurePolicy, p); counts {
			counted++
		} else {
			ignored++
		}
	}
	st.Annotations[batchv1.JobIndexFailureCountAnnotation] = strconv.Itoa(counted)
	if ignored > 0 {
		st.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation] = strconv.Itoa(ignored)
	}
	return st
}

// indexPrefix leaves room for the random end of a generated name. A pod's host
// name, which is made of it, has at most 63 characters. Five random characters are appended by
// the API.
func indexPrefix(job, index string) string {
	const most = 58
	end := "-" + index + "-"
	if len(job)+len(end) > most {
		job = job[:most-len(end)]
	}
	return job + end
}

// toRemove chooses at least n active pods to delete: of an index all but one,
// then those that have got least far. Duplicates go even if fewer are to be
// removed: an index must have one pod. n may be 0.
func (s *state) toRemove(n int) []*v1.Pod {
	left := slices.Clone(s.activePods)
	var rm []*v1.Pod
	if indexed(s.job) {
		rm, left = s.duplicates(left)
	}
	if len(rm) < n {
		slices.SortStableFunc(left, leastActive)
		rm = append(rm, left[:min(n-len(rm), len(left))]...)
	}
	return rm
}

// duplicates splits pods into those that another one of their index, or no
// index that counts, makes superfluous, and the rest. Indexes go in order, so the same pods are
// chosen each time.
func (s *state) duplicates(pods []*v1.Pod) (rm, left []*v1.Pod) {
	byIndex := map[int][]*v1.Pod{}
	var order []int
	for _, p := range pods {
		i := indexOf(p)
		if !s.indexCounts(i) {
			rm = append(rm, p)
			continue
		}
		if byIndex[i] == nil {
			order = append(order, i)
		}
		byIndex[i] = append(byIndex[i], p)
	}
	slices.Sort(order)
	for _, i := range order {
		same := byIndex[i]
		slices.SortStableFunc(same, leastActive)
		rm, left = append(rm, same[:len(same)-1]...), append(left, same[len(same)-1])
	}
	return rm, left
}

// leastActive orders pods by how far they have got (controller.ActivePods). The
// youngest of equals goes first, as it has done least. Unassigned before assigned, pending before
// unknown before running, not ready before ready, shorter ready first, more restarts of one
// container first, younger first.
func leastActive(a, b *v1.Pod) int {
	num := func(is bool) int {
		if is {
			return 1
		}
		return 0
	}
	phase := func(p *v1.Pod) int {
		return num(p.Status.Phase == v1.PodUnknown) + 2*num(p.Status.Phase == v1.PodRunning)
	}
	aReady, bReady := controller.PodReady(a), controller.PodReady(b)
	if c := cmp.Or(cmp.Compare(num(a.Spec.NodeName != ""), num(b.Spec.NodeName != "")), cmp.Compare(phase(a), phase(b)), cmp.Compare(num(aReady), num(bReady))); c != 0 {
		return c
	}
	if aReady && bReady {
		if c := controller.ReadySince(b).Compare(controller.ReadySince(a)); c != 0 {
			return c
		}
	}
	aRestarts, aSidecars := controller.MostRestarts(a)
	bRestarts, bSidecars := controller.MostRestarts(b)
	return cmp.Or(cmp.Compare(bRestarts, aRestarts), cmp.Compare(bSidecars, aSidecars), b.CreationTimestamp.Compare(a.CreationTimestamp.Time))
}
