package lifecycle

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/images"
	"github.com/drydock-sim/drydock/fakecri/internal/program"
)

// PullImage is the call PullImage of a canonical name once faults have acted. What
// can go wrong does so in the order of a real pull: the name is resolved, then the
// registry answers, then the credentials are looked at, then the disk fills up. The answer is the
// image's id. Times are drawn by name and number of the pull, so that one image's pulls don't
// shift another's.
func (r *Machine) PullImage(ctx context.Context, sub *calls.Subject, name string, auth *runtimeapi.AuthConfig) (string, error) {
	if err := r.Calls.Pause(ctx, calls.PullImage, sub); err != nil {
		return "", err
	}
	src := r.Images.Source(name)
	if src == nil {
		return "", status.Errorf(codes.NotFound, "failed to pull and unpack image %q: failed to resolve image: %s: not found", name, name)
	}
	// Pulls that fail count too, so that the next can be the one that works.
	n := src.Pulls
	src.Pulls++
	// 0 fails for ever.
	if f := src.Fail; f != nil && (f.Times == 0 || n < uint64(f.Times)) {
		return "", r.failPull(ctx, f, name, n)
	}
	if !src.Auth.Admits(auth) {
		return "", status.Errorf(codes.Unknown, "failed to pull and unpack image %q: failed to resolve image: pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed", name)
	}
	took := r.Loop.Between(src.Pull.Min, src.Pull.Max, "pull", name, n)
	// The layers are there; the registry is asked for the manifest only.
	if r.Images.ByRef[name] != nil {
		took /= calls.RepeatShare
	}
	// The time of the download; a cancelled call has brought nothing.
	if err := r.Loop.Sleep(ctx, took); err != nil {
		return "", err
	}
	// Looked at last, as the disk is written to last.
	if err := r.Images.ImageFits(src, name); err != nil {
		return "", err
	}
	// Another pull may have brought it meanwhile, under this name or another.
	fresh := r.Images.ByRef[src.ID] == nil
	im := r.Images.Add(src, name)
	r.Images.CountPull(name, src.Size, fresh)
	return im.ID, nil
}

// failPull is the n-th pull of an image whose pulls fail. The default time is that of a
// registry's answer.
func (r *Machine) failPull(ctx context.Context, f *images.PullFailure, name string, n uint64) error {
	after := f.After
	if after == (program.Range{}) {
		after = program.Range{Min: 5 * time.Millisecond, Max: 15 * time.Millisecond}
	}
	if err := r.Loop.Sleep(ctx, r.Loop.Between(after.Min, after.Max, "pull failure", name, n)); err != nil {
		return err
	}
	code, _ := calls.ParseCode(f.Code)
	msg := f.Message
	if msg == "" {
		msg = fmt.Sprintf("failed to pull and unpack image %q: failed to resolve image: %s: not found", name, name)
	}
	return status.Error(code, msg)
}
