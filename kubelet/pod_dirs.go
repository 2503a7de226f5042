package kubelet

import (
	"io/fs"

	"k8s.io/apimachinery/pkg/types"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// makePodDirs makes a pod's directories, if they are not there.
// It mirrors upstream's makePodDataDirs, with its permissions.
func (v *podVolumes) makePodDirs(uid types.UID) error {
	names := podDirNames[:]
	if files, ok := v.fs.(dirMaker); ok {
		return files.MkdirAllIn(v.podsDir, string(uid), 0o750, names)
	}
	dir := v.podDir(uid)
	if err := v.fs.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	for _, name := range names {
		if err := v.fs.MkdirAll(dir+"/"+name, 0o750); err != nil {
			return err
		}
	}
	return nil
}

var podDirNames = [...]string{"volumes", "plugins"}

// dirMaker is a file system that makes a directory with others in it at once,
// which is done at each sync and mostly finds them made.
type dirMaker interface {
	MkdirAllIn(parent, dir string, perm fs.FileMode, names []string) error
}

// cleanUpPodDirs removes the directories of pods that are neither wanted nor
// running. It reports whether one still holds volumes.
// It mirrors upstream's cleanupOrphanedPodDirs (pkg/kubelet/kubelet_volumes.go).
func (v *podVolumes) cleanUpPodDirs(running []*kubecontainer.Pod) (again bool) {
	var orphaned []types.UID
	for name := range filesystem.Names(v.fs, v.podsDir) {
		uid := types.UID(name)
		if _, ok := v.pods.GetPodByUID(uid); !ok && !runs(running, uid) {
			orphaned = append(orphaned, uid)
		}
	}
	for _, uid := range orphaned {
		if v.removeOrphanedPodDir(uid) {
			again = true
		}
	}
	return again
}
