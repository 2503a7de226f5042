package kuberuntime

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// What links to logs are called, see link.
const (
	logLinkSuffix = ".log"
	// minIDLength is with how few characters a runtime can find a container.
	minIDLength = 6
	// maxLinkName is the longest name of a file, in bytes.
	maxLinkName = 255
)

// linker is a file system on which links to logs can be made.
type linker interface {
	Stat(name string) (fs.FileInfo, error)
	Symlink(oldname, newname string) error
}

// containerLogs are the log files of containers, which runtimes write, and the
// links by which collectors find them.
type containerLogs struct {
	fs FileSystem // nil: logs are left alone
	// podsDir has a directory for each pod; linksDir has the links, "": none are
	// made.
	podsDir, linksDir string
	log               func(format string, args ...any)
}

// podLogDir is where a pod's containers log to, a directory each.
func podLogDir(logsDir, namespace, name, uid string) string {
	return logsDir + "/" + namespace + "_" + name + "_" + uid
}

// dir is where a container logs to, a file for each attempt.
func (f *containerLogs) dir(pod *v1.Pod, c *v1.Container) string {
	return podLogDir(f.podsDir, pod.Namespace, pod.Name, string(pod.UID)) + "/" + c.Name
}

// linker returns the file system if links are to be made, and can be.
func (f *containerLogs) linker() (files linker, ok bool) {
	files, ok = f.fs.(linker)
	return files, ok && f.linksDir != ""
}

// restartCount is one more than that of the newest status. Without a status,
// since the runtime has lost its containers, the names of the log files in dir
// show how often the container was started.
func (f *containerLogs) restartCount(dir string, c *v1.Container, status *kubecontainer.PodStatus) int {
	if s := status.FindContainerStatusByName(c.Name); s != nil {
		return int(s.RestartCount) + 1
	}
	if f.fs == nil {
		return 0
	}
	entries, err := f.fs.ReadDir(dir)
	if err != nil {
		return 0 // there is none, or it can't be read
	}
	count := 0
	for _, e := range entries {
		digits, rest, _ := strings.Cut(e.Name(), ".")
		if e.IsDir() || rest != "log" && !strings.HasPrefix(rest, "log.") {
			continue
		}
		if n, err := strconv.Atoi(digits); err == nil {
			count = max(count, n+1)
		}
	}
	return count
}

// remove removes a log file and its rotated ones.
func (f *containerLogs) remove(path string) {
	i := strings.LastIndexByte(path, '/')
	if f.fs == nil || i <= 0 {
		return
	}
	entries, err := f.fs.ReadDir(path[:i])
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), path[i+1:]) {
			continue
		}
		if err := f.fs.Remove(path[:i+1] + e.Name()); err != nil {
			f.log("remove log %s: %v", e.Name(), err)
		}
	}
}

// link is the link by which log collectors find a container's log (upstream
// legacyLogSymlink).
// The name is cut where a file system takes no longer one; the end, which has
// the ID, is lost then, as upstream's is.
func (f *containerLogs) link(pod, namespace, container, id string) string {
	name := pod + "_" + namespace + "_" + container + "-" + id
	return f.linksDir + "/" + name[:min(len(name), maxLinkName-len(logLinkSuffix))] + logLinkSuffix
}

// makeLink makes the link to the log of a container that was started, if there
// is a log.
// A runtime without logs, as one in process may be, gets no dead links.
func (f *containerLogs) makeLink(s *start, config *runtimeapi.ContainerConfig) {
	files, ok := f.linker()
	if !ok {
		return
	}
	log := s.sandbox.LogDirectory() + "/" + config.LogPath
	if _, err := files.Stat(log); errors.Is(err, fs.ErrNotExist) {
		return
	}
	link := f.link(s.pod.Name, s.pod.Namespace, s.c.Name, s.containerID)
	if err := files.Symlink(log, link); err != nil {
		f.log("Failed to create legacy symbolic link %s to container log %s: %v", link, log, err)
	}
}

// removeLink removes the link to the log of a container that is removed.
func (f *containerLogs) removeLink(status *runtimeapi.ContainerStatus) {
	if f.linksDir == "" || f.fs == nil || status == nil {
		return
	}
	labels := status.Labels
	link := f.link(labels[labelPodName], labels[labelPodNamespace], labels[labelContainerName], status.Id)
	if err := f.fs.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.log("Failed to remove container %q log legacy symbolic link %s: %v", status.Id, link, err)
	}
}

// removeDeadLinks removes links that lead nowhere, but those of containers that
// have not exited: their logs may be about to be rotated.
func (f *containerLogs) removeDeadLinks(ctx context.Context, rt *remote) {
	files, ok := f.linker()
	if !ok {
		return
	}
	entries, err := f.fs.ReadDir(f.linksDir)
	if err != nil {
		return
	}
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), logLinkSuffix)
		link := f.linksDir + "/" + e.Name()
		if _, err := files.Stat(link); !ok || e.Type()&fs.ModeSymlink == 0 || !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		id := base[strings.LastIndexByte(base, '-')+1:]
		if len(id) >= minIDLength {
			resp, err := rt.ContainerStatus(ctx, id)
			if s := resp.GetStatus(); err == nil && (s == nil || s.State != runtimeapi.ContainerState_CONTAINER_EXITED) {
				continue
			}
		}
		if err := f.fs.Remove(link); err != nil {
			f.log("Failed to remove container log dead symlink %s: %v", link, err)
		}
	}
}
