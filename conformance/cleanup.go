//go:build linux

package conformance

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// remove takes away containers and sandboxes by their IDs, as far as they are
// there; what cannot be removed is found by leftovers. Errors are left to the
// last check, which looks at what is really there. Stopping has no timeout and so kills; all of
// it works on what is gone.
func (r *suite) remove(ctx context.Context, sandboxes, containers []string) {
	// The last made goes first: it may depend on what was made before.
	for i := len(containers) - 1; i >= 0; i-- {
		_, _ = r.clients.rt.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: containers[i]})
		_, _ = r.clients.rt.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: containers[i]})
	}
	for i := len(sandboxes) - 1; i >= 0; i-- {
		_, _ = r.clients.rt.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandboxes[i]})
		_, _ = r.clients.rt.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: sandboxes[i]})
	}
}

// owned lists what there is of a scope: what has its labels, and of the
// candidates, which were made for it, what is there in whatever form. A runtime
// that loses labels would hide what was made, so IDs are asked for as well. The two ways of
// knowing, by label and by id, cover each other's failures.
func (r *suite) owned(ctx context.Context, s scope, sandboxes, containers []string) (boxes, conts []string, err error) {
	mine := map[string]bool{}
	for _, id := range append(append([]string(nil), sandboxes...), containers...) {
		mine[id] = true
	}
	// Without a filter, since filters are among what is checked.
	bs, err := r.clients.rt.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return nil, nil, fmt.Errorf("ListPodSandbox: %s", describe(err))
	}
	for _, b := range bs.GetItems() {
		if s.has(b.Labels) || mine[b.Id] {
			boxes = append(boxes, b.Id)
		}
	}
	cs, err := r.clients.rt.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil, nil, fmt.Errorf("ListContainers: %s", describe(err))
	}
	for _, c := range cs.GetContainers() {
		if s.has(c.Labels) || mine[c.Id] {
			conts = append(conts, c.Id)
		}
	}
	return boxes, conts, nil
}

// clear removes all there is of a scope. What could not be removed is found by asking again.
func (r *suite) clear(ctx context.Context, s scope, sandboxes, containers []string) error {
	boxes, conts, err := r.owned(ctx, s, sandboxes, containers)
	if err != nil {
		return err
	}
	r.remove(ctx, boxes, conts)
	return nil
}

const (
	// leftoversTimeout bounds the last cleanup, leftoversPatience how long it
	// tries again.
	leftoversTimeout  = 2 * time.Minute
	leftoversPatience = 20 * time.Second
	// settle is how long a runtime has to notice that a call was cut short.
	settle = time.Second
)

// leftovers is the last check: it removes what the run has left, images too, and
// wants that to work. It tries for a while: a call that was cut short may still
// be at work in the runtime. It is a check like the others, so a runtime that can't clean up does
// not conform.
func (r *suite) leftovers(ctx context.Context) Result {
	rec := newRecorder()
	ctx, cancel := context.WithTimeout(recording(ctx, rec), leftoversTimeout)
	defer cancel()
	began := time.Now()
	res := Result{Name: "cri/leftovers", Level: Required, Status: Passed, Expected: "At the end every sandbox, container and image of the run can be removed, and none is listed any more."}
	var boxes, conts []string
	// Checks are over, but a call of theirs may still be noted.
	r.mu.Lock()
	// All checks' recorders, for what lost its labels.
	for _, x := range r.recorders {
		b, c := x.made()
		boxes, conts = append(boxes, b...), append(conts, c...)
	}
	r.mu.Unlock()
	all := scope{run: r.name}
	fail := func(format string, args ...any) {
		res.Status, res.Came = Failed, append(res.Came, fmt.Sprintf(format, args...))
	}
	// What is made after this look would be missed.
	if r.report.Interrupted {
		// Calls that were cut short may be at work still.
		pause(ctx, settle)
	}
	for deadline := time.Now().Add(leftoversPatience); ; pause(ctx, settle/2) {
		// Each try judges anew.
		res.Status, res.Came = Passed, nil
		if err := r.clear(ctx, all, boxes, conts); err != nil {
			fail("%v", err)
		}
		r.stillThere(ctx, all, boxes, conts, fail)
		if res.Status == Passed || time.Now().After(deadline) || ctx.Err() != nil {
			break
		}
	}
	if res.Status == Failed {
		res.RPCs, res.Omitted = rec.last(reportRPCs)
	}
	res.Duration = time.Since(began)
	res.Seconds = res.Duration.Seconds()
	return res
}

// stillThere tells of what is left. It is a failure of the runtime if removing
// succeeded and the thing is still there. Images are removed here as well, since they are in use
// until the containers are gone.
func (r *suite) stillThere(ctx context.Context, s scope, sandboxes, containers []string, fail func(format string, args ...any)) {
	if b, c, err := r.owned(ctx, s, sandboxes, containers); err != nil {
		fail("%v", err)
	} else {
		if len(b) > 0 {
			fail("sandboxes that cannot be removed: %s", strings.Join(b, ", "))
		}
		if len(c) > 0 {
			fail("containers that cannot be removed: %s", strings.Join(c, ", "))
		}
	}
	if left, err := r.removeImages(ctx); err != nil {
		fail("%v", err)
	} else if len(left) > 0 {
		fail("images that cannot be removed: %s", strings.Join(left, ", "))
	}
}

// pause waits, or returns at the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// prefix is what references to the test images begin with. The registry's port is chosen for the
// run, so nobody else's image has it.
func (r *suite) prefix() string { return r.registry.Addr() + "/" }

// notePresent notes the test images that are there before the run: they stay. An
// image may be there from an earlier run with a fixed registry.
func (r *suite) notePresent(ctx context.Context) {
	r.present = map[string]bool{}
	list, err := r.clients.im.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return // the checks will tell
	}
	for _, im := range list.GetImages() {
		r.present[im.Id] = true
	}
}

// removeImages removes what was pulled from the test registry, and returns what
// is there nevertheless. An image that has also other names is somebody else's
// and stays. The result is sorted, so that the message is the same each time.
func (r *suite) removeImages(ctx context.Context) ([]string, error) {
	pulled := func() ([]string, error) {
		list, err := r.clients.im.ListImages(ctx, &runtimeapi.ListImagesRequest{})
		if err != nil {
			return nil, fmt.Errorf("ListImages: %s", describe(err))
		}
		var out []string
		for _, im := range list.GetImages() {
			if !r.present[im.Id] && ours(r.prefix(), im) {
				out = append(out, im.Id)
			}
		}
		sort.Strings(out)
		return out, nil
	}
	ids, err := pulled()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		_, _ = r.clients.im.RemoveImage(ctx, &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: id}})
	}
	return pulled()
}
