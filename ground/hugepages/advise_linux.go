package hugepages

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/drydock-sim/drydock/ground/lists"
)

// span is how far from one object of the heap another may be: the runtime's
// arenas are side by side.
const span = 1 << 38

// Advise asks for huge pages for the mappings of the heap, unless they are
// already's bytes as at the last time, and returns how many bytes they are.
func Advise(already int64) (int64, error) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	defer f.Close() // only read
	own := uintptr(unsafe.Pointer(new([64 << 10]byte)))
	areas, err := parse(f, own)
	if err != nil {
		return 0, err
	}
	total := lists.Sum(areas, func(a area) int64 { return int64(a.end - a.start) })
	if total == already {
		return total, nil
	}
	for _, a := range areas {
		if err := advise(a); err != nil {
			return 0, fmt.Errorf("madvise of %d bytes: %w", a.end-a.start, err)
		}
	}
	return total, nil
}

type area struct{ start, end uintptr }

// parse finds the anonymous, writable mappings near an address.
func parse(r io.Reader, near uintptr) ([]area, error) {
	var out []area
	s := bufio.NewScanner(r)
	for s.Scan() {
		fields := strings.Fields(s.Text())
		if len(fields) != 5 || fields[1] != "rw-p" { // a sixth is a name
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err := strconv.ParseUint(from, 16, 64)
		if err != nil {
			return nil, fmt.Errorf("a mapping %q: %w", fields[0], err)
		}
		end, err := strconv.ParseUint(to, 16, 64)
		if err != nil {
			return nil, fmt.Errorf("a mapping %q: %w", fields[0], err)
		}
		a := area{uintptr(start), uintptr(end)}
		if a.start/span == near/span && a.end > a.start {
			out = append(out, a)
		}
	}
	return out, s.Err()
}

func advise(a area) error {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, a.start, a.end-a.start, unix.MADV_HUGEPAGE)
	if errno != 0 {
		return errno
	}
	return nil
}
