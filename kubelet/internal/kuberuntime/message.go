package kuberuntime

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
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

// terminationMessages are the files in which containers leave a message when
// they end, and their reading.
type terminationMessages struct {
	fs   FileSystem // nil: there are no messages
	loop *loop.Loop
	log  func(format string, args ...any)
	made uint64 // files; with the container and the attempt it decides a file's name
}

// mounts are the container's mounts with, at the end, that of the file that
// takes its termination message, which is made here. A container whose file
// can't be made has none.
// The file's name is drawn, as upstream's is random: containers of one attempt
// must not share it.
func (t *terminationMessages) mounts(opts *kubecontainer.RunContainerOptions, pod *v1.Pod, c *v1.Container, attempt int) []*runtimeapi.Mount {
	if opts.PodContainerDir == "" || c.TerminationMessagePath == "" || t.fs == nil {
		return opts.Mounts
	}
	t.made++
	id := uint32(t.loop.Uint64("kubelet/termination-log", string(pod.UID)+"/"+c.Name, uint64(attempt)<<32|t.made&(1<<32-1)))
	file := opts.PodContainerDir + "/" + hex8(id)
	if err := t.fs.WriteFile(file, nil, 0o666); err != nil {
		t.log("error on creating termination-log file %q: %v", file, err)
		return opts.Mounts
	}
	n := len(opts.Mounts)
	return append(opts.Mounts[:n:n], &runtimeapi.Mount{ContainerPath: c.TerminationMessagePath, HostPath: file})
}

// hex8 are the eight hexadecimal digits of n.
func hex8(n uint32) string {
	s := strconv.FormatUint(uint64(n), 16)
	return "00000000"[len(s):] + s
}

// add adds to an ended container's message what it left in
// the file of its terminationMessagePath, or else in its log.
// It becomes part of the status that is cached, so the file is read once per
// inspection.
func (t *terminationMessages) add(out *kubecontainer.Status, s *runtimeapi.ContainerStatus) {
	if t.fs == nil {
		return
	}
	fallback := s.Annotations[annotationTerminationPolicy] == string(v1.TerminationMessageFallbackToLogsOnError) &&
		out.ExitCode != 0 && out.Reason != reasonCannotRun
	text, fromLog := t.read(s, fallback)
	if fromLog {
		text = t.lastOfLog(s.LogPath)
	}
	if text == "" {
		return
	}
	if out.Message != "" {
		text = out.Message + ": " + text
	}
	out.Message = text
}

// read reads the file; fromLog says that the log has to do.
func (t *terminationMessages) read(s *runtimeapi.ContainerStatus, fallback bool) (text string, fromLog bool) {
	path := s.Annotations[annotationTerminationPath]
	if path == "" {
		return "", fallback
	}
	for _, mount := range s.Mounts {
		if mount.ContainerPath != path {
			continue
		}
		data, err := t.fs.ReadFile(mount.HostPath)
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

// lastOfLog is the end of a container's log; an error is a message, too, as
// upstream's.
func (t *terminationMessages) lastOfLog(path string) string {
	data, err := readTail(t.fs, path)
	if err != nil {
		return fmt.Sprintf("Error on reading termination message from logs: failed to try resolving symlinks in path %q: %v", path, err)
	}
	return string(logs.Tail(data, maxMessageLines, maxMessageLog))
}

// tailBytes is more than the last lines of a log that a message can have: each
// entry has some bytes before its content.
const tailBytes = 64 << 10

// readTail reads a log, or only its end, where a file can be big.
// A log may have grown to its limit of many megabytes.
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
