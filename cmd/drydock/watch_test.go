//go:build linux

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// heard is an output that another goroutine reads.
type heard struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.Write(p)
}

// await waits until a text was written, so many times.
func (h *heard) await(t *testing.T, text string, times int) {
	t.Helper()
	for {
		h.mu.Lock()
		n := strings.Count(h.b.String(), text)
		h.mu.Unlock()
		if n >= times {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the test ended")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

const watched = `apiVersion: drydock.dev/v1alpha1
kind: Scenario
metadata: {name: watched}
spec: {duration: 5s, nodes: [{name: n}]}
`

// TestWatch: a change of the file is a new run, a mistake is told and mended, a signal ends it.
func TestWatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(watched)
	ctx, stop := context.WithCancel(t.Context())
	var out heard
	code := make(chan int)
	go func() { code <- execute(ctx, []string{"run", "--watch", file}, &out, &out) }()
	out.await(t, "waiting for changes", 1)
	out.await(t, "PASS watched: 5s virtual", 1)
	write(strings.Replace(watched, "5s", "50s", 1))
	out.await(t, "PASS watched: 50s virtual", 1)
	out.await(t, "waiting for changes", 2)
	write(strings.Replace(watched, "duration", "durration", 1))
	out.await(t, `unknown field "durration"`, 1)
	out.await(t, "waiting for changes", 3)
	write(watched)
	out.await(t, "PASS watched: 5s virtual", 2)
	out.await(t, "waiting for changes", 4)
	stop()
	if c := <-code; c != exitOK {
		t.Errorf("exit code %d", c)
	}
}

// TestSignalEndsReading: a pipe that nobody writes to holds nobody up once there was a signal.
func TestSignalEndsReading(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, command := range []string{"validate", "run", "list"} {
		var errs bytes.Buffer
		if code := execute(ctx, []string{command, pipe}, io.Discard, &errs); code != exitFailed || !strings.Contains(errs.String(), "interrupted while reading") {
			t.Errorf("%s: exit code %d, %s", command, code, errs.String())
		}
	}
	// Whoever still waits for a writer gets one.
	w, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
}

// TestColors: lines have the colour of their beginning, also where they come in parts.
func TestColors(t *testing.T) {
	var out bytes.Buffer
	c := &colored{w: &out}
	for _, part := range []string{"ok        by 1s\nFAI", "LED\nplain PASS\nwarning: x\n"} {
		if n, err := c.Write([]byte(part)); n != len(part) || err != nil {
			t.Error(n, err)
		}
	}
	if want := "\x1b[32mok        by 1s\x1b[0m\nFAILED\nplain PASS\n\x1b[33mwarning: x\x1b[0m\n"; out.String() != want {
		t.Errorf("%q", out.String())
	}
	if w := colorsOn(&out); w != io.Writer(&out) {
		t.Error("a buffer is no terminal")
	}
}
