//go:build linux

package machine

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// fakeRoot is a machine's facts as files.
func fakeRoot(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const meminfo = "MemTotal:       24684084 kB\nMemFree:        17000000 kB\n"

func TestFacts(t *testing.T) {
	root := fakeRoot(t, map[string]string{
		"proc/meminfo":                   meminfo,
		"proc/sys/kernel/random/boot_id": "boot\n",
		"proc/sys/kernel/osrelease":      "6.1.0-test\n",
		"etc/machine-id":                 "\n",
		"var/lib/dbus/machine-id":        "machine\n",
		"sys/class/dmi/id/product_uuid":  "UUID\n",
		"etc/os-release":                 "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
		"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages":    "3\n",
		"sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "0\n",
		"sys/module/apparmor/parameters/enabled":                   "Y\n",
		"sys/kernel/security/apparmor/profiles":                    "",
	})
	m, err := read(root, filepath.Join(root, "var/lib/kubelet/not/there"))
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][2]string{
		"boot ID": {m.BootID(), "boot"}, "machine ID": {m.MachineID(), "machine"}, "system UUID": {m.SystemUUID(), "UUID"},
		"kernel": {m.KernelVersion(), "6.1.0-test"}, "OS": {m.OSImage(), "Debian GNU/Linux 12 (bookworm)"},
	} {
		if got[0] != got[1] {
			t.Errorf("%s is %q, want %q", name, got[0], got[1])
		}
	}
	for name, want := range map[v1.ResourceName]string{"memory": "24684084Ki", "hugepages-2Mi": "6Mi", "hugepages-1Gi": "0"} {
		if q, ok := m.Capacity()[name]; !ok || q.String() != want {
			t.Errorf("%s is %s, want %s", name, q.String(), want)
		}
	}
	if q := m.Capacity()[v1.ResourceEphemeralStorage]; q.Value() < 1<<20 {
		t.Errorf("ephemeral storage is %s", q.String())
	}
	if q := m.Capacity()[v1.ResourceCPU]; q.Value() < 1 {
		t.Errorf("cpu is %s", q.String())
	}
	if !m.AppArmorEnabled() {
		t.Error("AppArmor is off")
	}
	if o := m.WithNodeIP(net.IPv4(10, 1, 2, 3)); o.NodeIP() != "10.1.2.3" || m.NodeIP() == "10.1.2.3" {
		t.Error("WithNodeIP changes the wrong machine")
	}
}

func TestMissingFacts(t *testing.T) {
	m, err := read(fakeRoot(t, map[string]string{"proc/meminfo": meminfo}), "/")
	if err != nil {
		t.Fatal(err)
	}
	if m.MachineID() != "" || m.SystemUUID() != "" || m.OSImage() != "" || m.AppArmorEnabled() {
		t.Errorf("got %+v", m)
	}
	if m.NodeIP() == "" {
		t.Error("no address")
	}
	_, err = read(fakeRoot(t, map[string]string{"proc/meminfo": "MemFree: 1 kB\n"}), "/")
	if err == nil || !strings.Contains(err.Error(), "MemTotal") {
		t.Errorf("no memory: %v", err)
	}
	if _, err := read(t.TempDir(), "/"); err == nil {
		t.Error("a machine without /proc has facts")
	}
}

func TestThisMachine(t *testing.T) {
	m, err := New("/var/lib/kubelet")
	if err != nil {
		t.Fatal(err)
	}
	capacity := m.Capacity()
	if capacity.Memory().Value() < 1<<28 || m.BootID() == "" || m.KernelVersion() == "" {
		t.Errorf("got %+v", m)
	}
}
