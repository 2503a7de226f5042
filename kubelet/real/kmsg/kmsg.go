//go:build linux

// Package kmsg reads from the kernel's log whom it killed for want of memory. It
// answers to cAdvisor's utils/oomparser, and to the watcher of upstream's
// pkg/kubelet/oom.
package kmsg

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/oom"
)

// device is where the kernel's log is read; it needs root.
const device = "/dev/kmsg"

// Source tells of kills to the loop of a kubelet.
type Source struct {
	l    *loop.Loop
	g    *loop.Group
	file string
	log  func(format string, args ...any)
}

var _ oom.Source = (*Source)(nil)

// New returns a source for one kubelet: a loop of the wall clock and the group
// that dies with it. log, if not nil, takes log lines from any goroutine.
func New(l *loop.Loop, g *loop.Group, log func(format string, args ...any)) *Source {
	if log == nil {
		log = func(string, ...any) {}
	}
	return &Source{l: l, g: g, file: device, log: log}
}

// WatchOOM implements oom.Source.
func (s *Source) WatchOOM(fn func(oom.Kill)) error {
	// Not blocking: a read in progress must end with Close.
	fd, err := unix.Open(s.file, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", s.file, err)
	}
	f := os.NewFile(uintptr(fd), s.file)
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		_ = f.Close()
		return fmt.Errorf("seek in %s: %w", s.file, err)
	}
	s.g.OnKill(func() { _ = f.Close() })
	go s.read(f, fn)
	return nil
}

// maxRecord is the longest record of the kernel's in bytes.
const maxRecord = 8192

// read posts the kills that a log tells of, until it is closed. Each read is one
// record.
func (s *Source) read(f io.Reader, fn func(oom.Kill)) {
	var p parser
	buf := make([]byte, maxRecord)
	for {
		n, err := f.Read(buf)
		switch {
		case errors.Is(err, unix.EPIPE): // records were lost
			continue
		case err != nil:
			if !errors.Is(err, os.ErrClosed) {
				s.log("The kernel's log can't be read any more: %v", err)
			}
			return
		}
		if at, text, ok := record(buf[:n]); ok {
			if kill, ok := p.line(text); ok {
				kill.Time = at
				s.l.Post(func() { fn(kill) })
			}
		}
	}
}

// record takes a record apart: "priority,number,µs since boot,flags;text", and
// lines of metadata.
func record(data []byte) (at time.Time, text string, ok bool) {
	head, rest, ok := bytes.Cut(data, []byte(";"))
	f := strings.SplitN(string(head), ",", 4)
	if !ok || len(f) < 3 {
		return time.Time{}, "", false
	}
	us, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return time.Time{}, "", false
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	now := time.Now()
	var mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) == nil {
		now = now.Add(time.Duration(us)*time.Microsecond - time.Duration(mono.Nano()))
	}
	return now, string(line), true
}

// What the kernel logs of a kill: a first line, one of the cgroups, a last one.
// Older kernels name the cgroups in a sentence.
var (
	first   = regexp.MustCompile(`invoked oom-killer:`)
	cgroups = regexp.MustCompile(`oom-kill:constraint=([^,]*),.*?(?:oom_memcg=(.*?),)?(?:global_oom,)?task_memcg=(.*),task=(.*),pid=(\d+),uid=(\d+)`)
	legacy  = regexp.MustCompile(`Task in (.*) killed as a result of limit of (.*)`)
	last    = regexp.MustCompile(`Killed process (\d+),? (?:UID \d+,? )?\((.+)\)`)
)

// parser puts the lines of a kill together.
type parser struct {
	open bool
	kill oom.Kill
}

// line takes one; it returns a kill with its last.
func (p *parser) line(text string) (oom.Kill, bool) {
	if first.MatchString(text) {
		p.open, p.kill = true, oom.Kill{Container: "/", Victim: "/"}
		return oom.Kill{}, false
	}
	if !p.open {
		return oom.Kill{}, false
	}
	if m := cgroups.FindStringSubmatch(text); m != nil {
		if p.kill.Victim = m[3]; m[2] != "" {
			p.kill.Container = m[2]
		}
		return oom.Kill{}, false
	}
	if m := legacy.FindStringSubmatch(text); m != nil {
		p.kill.Victim, p.kill.Container = m[1], m[2]
		return oom.Kill{}, false
	}
	m := last.FindStringSubmatch(text)
	if m == nil {
		return oom.Kill{}, false
	}
	p.open = false
	p.kill.PID, _ = strconv.Atoi(m[1])
	p.kill.Process = m[2]
	return p.kill, true
}
