//go:build linux

package conformance

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"k8s.io/mount-utils"

	"golang.org/x/sys/unix"

	tmpfs "github.com/drydock-sim/drydock/kubelet/real/mount"
)

// needs are what a run found out about itself, each once. A machine without the
// right to mount, or whose pods can't be reached, says nothing about the runtime:
// checks that need it are skipped, with why as the reason. Finding out costs a pod or a mount, so
// it is done when the first check asks.
type needs struct {
	network, mounts struct {
		once sync.Once
		why  string
	}
}

// lacks says why the run cannot have what a check needs; "" if it can. The names are those of a
// scenario's conformance.needs.
func (r *suite) lacks(ctx context.Context, need string) string {
	n := &r.needs
	switch need {
	case "podNetwork":
		n.network.once.Do(func() { n.network.why = r.noNetwork(ctx) })
		return n.network.why
	case "mounts":
		n.mounts.once.Do(func() { n.mounts.why = r.noMounts() })
		return n.mounts.why
	case "root":
		if os.Geteuid() != 0 {
			return "the run is not root"
		}
		return ""
	}
	return "nobody knows what that is"
}

// noMounts tries to mount a tmpfs. A kubelet mounts volumes into the machine's
// file tree, which takes rights that a test may not have.
func (r *suite) noMounts() string {
	dir := filepath.Join(r.dir, "mount-test")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err.Error()
	}
	defer os.Remove(dir)
	m := tmpfs.New()
	if err := m.MountTmpfs(dir, 0); err != nil {
		return fmt.Sprintf("the run may not mount a tmpfs: %v", err)
	}
	if err := m.Unmount(dir); err != nil {
		return err.Error()
	}
	return ""
}

// noNetwork tries to reach a port of a pod. It runs a pod of its own, as a check
// does, and removes it. Without the right to reach pods, say in another network namespace, probes
// can't work.
func (r *suite) noNetwork(ctx context.Context) (why string) {
	const port = "8089"
	c := &check{name: "network-test", run: func(ctx context.Context, t *T) {
		p := t.pod(ctx, nil)
		t.start(ctx, p, nil, "run", "--tcp="+port)
		ip := t.podIP(ctx, p)
		t.eventually(ctx, 15*time.Second, func() string {
			conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", net.JoinHostPort(ip, port))
			if err != nil {
				return fmt.Sprintf("a pod's address cannot be reached from here: %v", err)
			}
			_ = conn.Close()
			return ""
		})
	}}
	if res := r.runCheck(ctx, c); res.Status != Passed {
		return strings.Join(append(res.Came, res.Reason), "; ")
	}
	return ""
}

// unmountBelow takes away every mount below a directory. What a kubelet that was
// cut off has left mounted would keep the directory from being removed. The deepest first.
// MNT_DETACH, so that what is busy does not stay either.
func unmountBelow(dir string) {
	all, err := mount.ParseMountInfo("/proc/self/mountinfo")
	if err != nil {
		return
	}
	var points []string
	for i := range all {
		if strings.HasPrefix(all[i].MountPoint, dir+"/") {
			points = append(points, all[i].MountPoint)
		}
	}
	sort.Sort(sort.Reverse(sort.StringSlice(points)))
	for _, p := range points {
		_ = unix.Unmount(p, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	}
}
