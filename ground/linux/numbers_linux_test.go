package linux_test

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drydock-sim/drydock/ground/linux"
)

// TestElsewhere reads the numbers and texts that other systems are built with, and wants Linux's.
func TestElsewhere(t *testing.T) {
	text, err := os.ReadFile("numbers_other.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := regexp.MustCompile(`\t([A-Z0-9]+) +(Errno|Signal) = (\d+)`).FindAllStringSubmatch(string(text), -1)
	if len(constants) < 40 {
		t.Fatalf("found %d constants", len(constants))
	}
	for _, m := range constants {
		n, _ := strconv.Atoi(m[3])
		name := unix.ErrnoName(linux.Errno(n))
		if m[2] == "Signal" {
			name = unix.SignalName(linux.Signal(n))
		}
		if name == "SIGIO" {
			name = "SIGPOLL" // the same, by its older name
		}
		if name != m[1] {
			t.Errorf("%s is %d, which Linux calls %s", m[1], n, name)
		}
	}
	// The texts of signals follow those of errors, after their table's head.
	of := func(n int) string { return linux.Errno(n).Error() }
	for _, m := range regexp.MustCompile(`\t(\d+): +(".*"),|signalTexts = `).FindAllStringSubmatch(string(text), -1) {
		if m[1] == "" {
			of = func(n int) string { return linux.Signal(n).String() }
			continue
		}
		n, _ := strconv.Atoi(m[1])
		if want := strconv.Quote(of(n)); m[2] != want {
			t.Errorf("%d is %s, and on Linux %s", n, m[2], want)
		}
	}
}
