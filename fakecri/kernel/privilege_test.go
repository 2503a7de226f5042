package kernel_test

import (
	"context"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
)

func TestCapabilityNames(t *testing.T) {
	for name, want := range map[string]kernel.Capabilities{
		"CHOWN": 1, "cap_net_bind_service": 1 << 10, "SYS_ADMIN": 1 << kernel.CapSysAdmin,
		"CAP_CHECKPOINT_RESTORE": 1 << 40, "ALL": 0x1ffffffffff,
	} {
		if got, ok := kernel.Capability(name); !ok || got != want {
			t.Errorf("%s: %x %v, want %x", name, got, ok, want)
		}
	}
	if got, ok := kernel.Capability("FLY"); ok || got != 0 {
		t.Errorf("FLY: %x %v", got, ok)
	}
}

// Root without capabilities is a user like others, and says so in /proc.
func TestCapabilities(t *testing.T) {
	none := kernel.Capabilities(0)
	for _, tc := range []struct {
		name string
		caps *kernel.Capabilities
		cred kernel.Cred
		eff  string
		free bool
	}{
		{"the usual ones", nil, kernel.Cred{}, "00000000a80425fb", true},
		{"none", &none, kernel.Cred{}, "0000000000000000", false},
		{"not root", nil, kernel.Cred{UID: 1000}, "0000000000000000", false},
	} {
		r := newRig(t)
		c := r.container(func(o *kernel.ContainerOptions) { o.Capabilities, o.NoNewPrivileges = tc.caps, true })
		must(t, c.View().WriteFile("/tmp/other", []byte("x"), 0o600))
		must(t, c.View().Chown("/tmp/other", 7, 7))
		r.as(tc.cred, c, func(_ context.Context, p *kernel.Process) int {
			v := p.View()
			status, err := v.ReadFile("/proc/self/status")
			if err != nil || !strings.Contains(string(status), "CapEff:\t"+tc.eff+"\n") || !strings.Contains(string(status), "NoNewPrivs:\t1\n") {
				t.Errorf("%s: %v\n%s", tc.name, err, status)
			}
			if err := v.Chmod("/tmp/other", 0o640); tc.free != (err == nil) || err != nil && !isErrno(err, linux.EPERM) {
				t.Errorf("%s: chmod: %v", tc.name, err)
			}
			if _, err := v.ReadFile("/tmp/other"); tc.free != (err == nil) || err != nil && !isErrno(err, linux.EACCES) {
				t.Errorf("%s: read: %v", tc.name, err)
			}
			if err := v.Chown("/tmp/other", 5, 5); tc.free != (err == nil) || err != nil && !isErrno(err, linux.EPERM) {
				t.Errorf("%s: chown: %v", tc.name, err)
			}
			return 0
		})
	}
}

// A tmpfs of the node's shows as one with its size, a directory as the disk's.
func TestMountOptions(t *testing.T) {
	r := newRig(t)
	must(t, r.fs.MkdirAll("/disk", 0o755))
	must(t, r.fs.MkdirAll("/mem", 0o755))
	must(t, r.fs.MountTmpfsSize("/mem", 2<<20))
	c := r.container(nil)
	must(t, c.View().Namespace().Bind("/v", r.fs, "/disk", true))
	must(t, c.View().Namespace().Bind("/m", r.fs, "/mem", false))
	must(t, c.View().Namespace().Bind("/dev/shm", r.fs, "/mem", false))
	got := map[string]string{}
	for _, m := range c.View().Namespace().Mounts() {
		if old := got[m.Path]; old != "" {
			t.Errorf("%s is mounted twice", m.Path)
		}
		got[m.Path] = m.Source + " " + m.Type + " " + m.Options
	}
	for path, want := range map[string]string{
		"/proc": "proc proc nosuid,nodev,noexec,relatime", "/dev": "tmpfs tmpfs nosuid,size=65536k,mode=755",
		"/v": "/dev/vda1 ext4 relatime", "/m": "tmpfs tmpfs relatime,size=2048k", "/dev/shm": "shm tmpfs nosuid,nodev,noexec,relatime,size=65536k",
	} {
		if got[path] != want {
			t.Errorf("%s: %q, want %q", path, got[path], want)
		}
	}
}
