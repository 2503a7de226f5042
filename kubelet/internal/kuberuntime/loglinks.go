package kuberuntime

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

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

// logLink is the link by which log collectors find a container's log (upstream
// legacyLogSymlink).
func (m *Manager) logLink(pod, namespace, container, id string) string {
	name := pod + "_" + namespace + "_" + container + "-" + id
	return m.o.ContainerLogsDir + "/" + name[:min(len(name), maxLinkName-len(logLinkSuffix))] + logLinkSuffix
}

// linkLog makes the link to the log of a container that was started, if there
// is a log.
func (m *Manager) linkLog(s *start, config *runtimeapi.ContainerConfig) {
	files, ok := m.o.FS.(linker)
	if m.o.ContainerLogsDir == "" || !ok {
		return
	}
	log := s.sandbox.LogDirectory() + "/" + config.LogPath
	if _, err := files.Stat(log); errors.Is(err, fs.ErrNotExist) {
		return
	}
	link := m.logLink(s.pod.Name, s.pod.Namespace, s.c.Name, s.containerID)
	if err := files.Symlink(log, link); err != nil {
		m.o.Log("Failed to create legacy symbolic link %s to container log %s: %v", link, log, err)
	}
}

// unlinkLog removes the link to the log of a container that is removed.
func (m *Manager) unlinkLog(status *runtimeapi.ContainerStatus) {
	if m.o.ContainerLogsDir == "" || m.o.FS == nil || status == nil {
		return
	}
	labels := status.Labels
	link := m.logLink(labels[labelPodName], labels[labelPodNamespace], labels[labelContainerName], status.Id)
	if err := m.o.FS.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.o.Log("Failed to remove container %q log legacy symbolic link %s: %v", status.Id, link, err)
	}
}

// removeDeadLinks removes links that lead nowhere, but those of containers that
// have not exited: their logs may be about to be rotated.
func (m *Manager) removeDeadLinks(ctx context.Context) {
	files, ok := m.o.FS.(linker)
	if m.o.ContainerLogsDir == "" || !ok {
		return
	}
	entries, err := m.o.FS.ReadDir(m.o.ContainerLogsDir)
	if err != nil {
		return
	}
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), logLinkSuffix)
		link := m.o.ContainerLogsDir + "/" + e.Name()
		if _, err := files.Stat(link); !ok || e.Type()&fs.ModeSymlink == 0 || !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		id := base[strings.LastIndexByte(base, '-')+1:]
		if len(id) >= minIDLength {
			resp, err := m.rt.ContainerStatus(ctx, id)
			if s := resp.GetStatus(); err == nil && (s == nil || s.State != runtimeapi.ContainerState_CONTAINER_EXITED) {
				continue
			}
		}
		if err := m.o.FS.Remove(link); err != nil {
			m.o.Log("Failed to remove container log dead symlink %s: %v", link, err)
		}
	}
}
