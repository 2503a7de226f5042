package job

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/lists"
)

// interval is the indexes from first to last. Both ends belong to it.
type interval struct{ first, last int }

// intervals are indexes in order, as statuses have them: "1,3-5". They don't
// overlap or touch. A job of 100,000 indexes that complete in order is one
// interval.
type intervals []interval

// parseIntervals reads such a text; what is beyond the completions is left out.
// It takes what it can read: users can't write it, and upstream goes on likewise. A text of an
// older, larger job is cut, since completions of an elastic indexed job may be lowered
// (KEP-3715).
func parseIntervals(text string, completions int) intervals {
	var out intervals
	for part := range strings.SplitSeq(text, ",") {
		from, to, many := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		if first >= completions {
			break
		}
		last := first
		if many {
			if last, err = strconv.Atoi(to); err != nil {
				continue
			}
			last = min(last, completions-1)
		}
		out = out.add(interval{first, last})
	}
	return out
}

// add appends what begins no earlier than the last interval does. Adjacent intervals become one,
// which String relies on.
func (iv intervals) add(x interval) intervals {
	if n := len(iv); n > 0 && x.first <= iv[n-1].last+1 {
		iv[n-1].last = max(iv[n-1].last, x.last)
		return iv
	}
	return append(iv, x)
}

// with returns the union with some indexes. The indexes may be in any order and repeat.
func (iv intervals) with(indexes []int) intervals {
	if len(indexes) == 0 {
		return iv
	}
	sorted := slices.Sorted(slices.Values(indexes))
	more := make(intervals, len(sorted))
	for i, x := range sorted {
		more[i] = interval{x, x}
	}
	return iv.union(more)
}

// union merges two in O(n+m).
func (iv intervals) union(more intervals) intervals {
	var out intervals
	i, j := 0, 0
	for i < len(iv) || j < len(more) {
		if j == len(more) || i < len(iv) && iv[i].first < more[j].first {
			out = out.add(iv[i])
			i++
		} else {
			out = out.add(more[j])
			j++
		}
	}
	return out
}

// total is how many indexes there are.
func (iv intervals) total() int {
	return lists.Sum(iv, func(x interval) int { return x.last - x.first + 1 })
}

// has reports whether an index is one of them, in O(log n). It is asked for each pod of a job in
// each sync.
func (iv intervals) has(i int) bool {
	at, _ := slices.BinarySearchFunc(iv, i, func(x interval, i int) int { return x.last - i })
	return at < len(iv) && iv[at].first <= i
}

// String spells them as statuses do: two neighbours are "1,2" and not "1-2". That is upstream's
// form, which users and tests compare as a text.
func (iv intervals) String() string {
	var b strings.Builder
	for _, x := range iv {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(x.first))
		if x.last > x.first {
			sep := byte('-')
			if x.last == x.first+1 {
				sep = ','
			}
			b.WriteByte(sep)
			b.WriteString(strconv.Itoa(x.last))
		}
	}
	return b.String()
}

// indexOf is a pod's index; -1 for none. The annotation is set by the controller on creation; a
// pod that was adopted may have none.
func indexOf(p *v1.Pod) int {
	n, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// countOf reads an annotation with a count; 0 for what is none. Whatever a user writes there must
// not overflow or panic.
func countOf(p *v1.Pod, key string) int {
	n, err := strconv.Atoi(p.Annotations[key])
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0
	}
	return n
}

// failuresOf is how often a pod's index had failed when it was made. Ignored failures count for
// the back-off although not for the limit.
func failuresOf(p *v1.Pod) int {
	return countOf(p, batchv1.JobIndexFailureCountAnnotation) + countOf(p, batchv1.JobIndexIgnoredFailureCountAnnotation)
}

// countIndexes finds the indexes that have succeeded and those that have failed.
// Completed indexes come from the status and from pods that still wait to be
// counted; so do failed ones. Both sets only grow while completions stay.
func (s *state) countIndexes() {
	j := s.job
	n := int(*j.Spec.Completions)
	s.before = parseIntervals(j.Status.CompletedIndexes, n)
	var done, lost []int
	for _, p := range s.pods {
		i := indexOf(p)
		if !s.indexCounts(i) || !tracked(p) {
			continue
		}
		if p.Status.Phase == v1.PodSucceeded {
			done = append(done, i)
		}
		if perIndex(j) && s.indexFailed(p) {
			lost = append(lost, i)
		}
	}
	s.done = s.before.with(done)
	s.succeeded = int32(s.done.total())
	if perIndex(j) && j.Status.FailedIndexes != nil {
		s.lost = parseIntervals(*j.Status.FailedIndexes, n)
	}
	s.lost = s.lost.with(lost)
}

// indexFailed reports whether a pod's failure fails its index. The limit counts
// the failures before this pod; its own is one more. FailIndex ends the index whatever the limit
// says.
func (s *state) indexFailed(p *v1.Pod) bool {
	if !failed(p, s.job) {
		return false
	}
	_, counts, action := matchFailure(s.job.Spec.PodFailurePolicy, p)
	return action == batchv1.PodFailurePolicyActionFailIndex ||
		counts && countOf(p, batchv1.JobIndexFailureCountAnnotation) >= int(*s.job.Spec.BackoffLimitPerIndex)
}

// findDelayed finds the failed pod of each index that is to get another one: it
// stays until then, since the back-off goes by it. Of several the one with the
// most failures counts, and of those the one that ended last: the annotations of
// the next pod continue its count (getPodsWithDelayedDeletionPerIndex). Its finalizer stays on
// too: it is the only place that says how often the index has failed.
func (s *state) findDelayed() {
	s.delayed = map[int]*v1.Pod{}
	active := map[int]bool{}
	for _, p := range s.activePods {
		active[indexOf(p)] = true
	}
	for _, p := range s.valid(nil, func(p *v1.Pod) bool { return failed(p, s.job) }) {
		i := indexOf(p)
		if s.done.has(i) || s.lost.has(i) || active[i] {
			continue
		}
		if d := s.delayed[i]; d == nil || failuresOf(d) <= failuresOf(p) && !finishedAt(p).Before(finishedAt(d)) {
			s.delayed[i] = p
		}
	}
}

// pendingIndexes are the first n indexes that want a pod. It walks the gaps
// between the intervals that are taken, so it costs the intervals and not the
// indexes (firstPendingIndexes). Lowest first: that is the order in which users see indexes run.
func (s *state) pendingIndexes(n int) []int {
	var busy []int
	for _, p := range s.pods {
		ended := p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
		if i := indexOf(p); i >= 0 && !ended && (p.DeletionTimestamp == nil || replacesFailedOnly(s.job)) {
			// A terminating pod holds its index only where replacements wait for its end.
			busy = append(busy, i)
		}
	}
	taken := s.done.with(busy).union(s.lost)
	out := make([]int, 0, n)
	next := 0
	for _, x := range append(slices.Clip(taken), interval{int(*s.job.Spec.Completions), math.MaxInt}) {
		for ; next < x.first && next < int(*s.job.Spec.Completions) && len(out) < n; next++ {
			out = append(out, next)
		}
		next = max(next, min(x.last, math.MaxInt-1)+1)
	}
	return out
}

// dueIndexes are those whose back-off is over; if there is none, when the first
// will be. If some are due, the sync after theirs looks for the others. An index without a failed
// pod is due at once.
func (s *state) dueIndexes(indexes []int) (due []int, wait time.Duration) {
	due = []int{}
	for _, i := range indexes {
		left := time.Duration(0)
		if p := s.delayed[i]; p != nil {
			left = backoffLeft(s.c.l, failuresOf(p)+1, finishedAt(p))
		}
		if left == 0 {
			due = append(due, i)
		} else if wait == 0 || left < wait {
			wait = left
		}
	}
	if len(due) > 0 {
		wait = 0
	}
	return due, wait
}
