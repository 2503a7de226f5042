package applets

import (
	"path"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Sysctl is sysctl, which reads below /proc/sys. Writing is refused there, as
// in a container whose /proc/sys is read-only.
func Sysctl() applet.Applet { return applet.New(runSysctl, "sysctl", "[-ne] KEY...") }

func runSysctl(c *applet.Call) int {
	o := c.Getopt("neAapwq")
	code := 0
	for _, a := range o.Args {
		key, _, isSet := strings.Cut(a, "=")
		// net.ipv4.ip_forward is the file net/ipv4/ip_forward.
		file := path.Join("/proc/sys", strings.ReplaceAll(key, ".", "/"))
		if isSet {
			c.Errorf("error setting key '%s': Read-only file system", key)
			code = 1
			continue
		}
		data, err := c.View().ReadFile(file)
		if err != nil {
			if !o.Has('e') {
				c.Errorf("error: '%s' is an unknown key", key)
			}
			code = 1
			continue
		}
		// The key is repeated before each line of a value.
		for _, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
			if !o.Has('n') {
				c.Print(key, " = ")
			}
			c.Print(line, "\n")
		}
	}
	return code
}
