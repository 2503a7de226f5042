//go:build linux

package mount

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/mount-utils"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

var _ filesystem.RemoteMounter = Mounter{}

// forceAfter is how long another machine may take to let go of a mount (unMountTimeout of
// upstream's pkg/volume/nfs).
const forceAfter = time.Minute

// MountRemote implements filesystem.RemoteMounter, by mount(8) and its helpers, on a
// goroutine.
func (Mounter) MountRemote(ctx context.Context, source, target, fstype string, options []string) error {
	_, err := loop.Await(ctx, func(context.Context) (struct{}, error) {
		return struct{}{}, mount.NewWithoutSystemd("").MountSensitiveWithoutSystemd(source, target, fstype, options, nil)
	})
	return err //nolint:wrapcheck // Events show its text.
}

// UnmountRemote implements filesystem.RemoteMounter.
func (Mounter) UnmountRemote(ctx context.Context, target string) error {
	_, err := loop.Await(ctx, func(context.Context) (struct{}, error) {
		m, ok := mount.NewWithoutSystemd("").(mount.MounterForceUnmounter)
		if !ok {
			return struct{}{}, errors.New("nothing is unmounted by force here")
		}
		return struct{}{}, m.UnmountWithForce(target, forceAfter)
	})
	if err != nil {
		return fmt.Errorf("unmount %s: %w", target, err)
	}
	return nil
}

// IsRemoteMountPoint implements filesystem.RemoteMounter. A path about which nothing can be
// found out is none.
func (Mounter) IsRemoteMountPoint(path string) bool {
	all, err := mount.ParseMountInfo(mountInfo)
	if err != nil {
		return false
	}
	for i := range all {
		if all[i].MountPoint == path {
			return true
		}
	}
	return false
}
