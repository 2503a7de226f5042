package server

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// MountsBelow returns the mount points of this machine below a directory, each
// once, parents first. Where there is no /proc there are none. The kernel finds it by an
// interface that it asks for, see BindHostBelow there.
func (*hostFS) MountsBelow(dir string) ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading mounts: %w", err)
	}
	defer func() { _ = f.Close() }()
	return mountsBelow(f, dir)
}

// mountinfoText is how the kernel writes what would break a line apart.
var mountinfoText = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// mountsBelow reads a file in the form of /proc/self/mountinfo. The fifth field is the mount
// point; see proc(5).
func mountsBelow(f io.Reader, dir string) ([]string, error) {
	dir = strings.TrimSuffix(dir, "/") + "/"
	var points []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20) // the options of an overlay can be long
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		if p := mountinfoText.Replace(fields[4]); len(p) > len(dir) && strings.HasPrefix(p, dir) {
			points = append(points, p)
		}
	}
	slices.Sort(points) // which puts parents first
	return slices.Compact(points), lines.Err()
}
