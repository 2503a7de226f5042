package kuberuntime

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/logs"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// How much of a termination message is taken (upstream
// kubecontainer.MaxContainerTerminationMessage*).
const (
	maxMessage      = 4096 // bytes of its file, the last ones
	maxMessageLog   = 2048 // bytes of the log
	maxMessageLines = 80   // lines of the log
)

// reasonCannotRun is the reason of a container that never ran, which has no log.
const reasonCannotRun = "ContainerCannotRun"

// addTerminationMessage adds to an ended container's message what it left in
// the file of its terminationMessagePath, or else in its log.
func (m *Manager) addTerminationMessage(out *kubecontainer.Status, s *runtimeapi.ContainerStatus) {
	if m.o.FS == nil {
		return
	}
	fallback := s.Annotations[annotationTerminationPolicy] == string(v1.TerminationMessageFallbackToLogsOnError) &&
		out.ExitCode != 0 && out.Reason != reasonCannotRun
	text, fromLog := m.terminationMessage(s, fallback)
	if fromLog {
		text = m.lastOfLog(s.LogPath)
	}
	if text == "" {
		return
	}
	if out.Message != "" {
		text = out.Message + ": " + text
	}
	out.Message = text
}

// terminationMessage reads the file; fromLog tells that the log has to do.
func (m *Manager) terminationMessage(s *runtimeapi.ContainerStatus, fallback bool) (text string, fromLog bool) {
	path := s.Annotations[annotationTerminationPath]
	if path == "" {
		return "", fallback
	}
	for _, mount := range s.Mounts {
		if mount.ContainerPath != path {
			continue
		}
		data, err := m.o.FS.ReadFile(mount.HostPath)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", fallback
		case err != nil:
			return fmt.Sprintf("Error on reading termination log %s: %v", mount.HostPath, err), false
		}
		return string(data[max(0, len(data)-maxMessage):]), fallback && len(data) == 0
	}
	return "", fallback
}

func (m *Manager) lastOfLog(path string) string {
	data, err := readTail(m.o.FS, path)
	if err != nil {
		return fmt.Sprintf("Error on reading termination message from logs: failed to try resolving symlinks in path %q: %v", path, err)
	}
	return string(logs.Tail(data, maxMessageLines, maxMessageLog))
}

// tailBytes is more than the last lines of a log that a message can have: each
// entry has some bytes before its content.
const tailBytes = 64 << 10

// readTail reads a log, or only its end, where a file can be big.
func readTail(files FileSystem, name string) ([]byte, error) {
	t, ok := files.(filesystem.Tailer)
	if !ok {
		return files.ReadFile(name)
	}
	data, err := t.ReadTail(name, tailBytes)
	if err == nil && len(data) == tailBytes { // it may begin within a line
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			data = data[i+1:]
		}
	}
	return data, err
}
