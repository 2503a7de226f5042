package applets

import (
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Hostname is hostname. Names and addresses come from /etc/hosts alone, as
// there is no DNS; without an entry -f prints the short name, -d nothing, and
// -i fails. Setting the name needs CAP_SYS_ADMIN and is seen by the whole
// container.
func Hostname() applet.Applet {
	return applet.New(runHostname, "hostname", "[-sidf] [HOSTNAME | -F FILE]")
}

// setHostname is hostname with a name or a file that holds one.
func setHostname(c *applet.Call, o *applet.Options) int {
	name := ""
	if o.Has('F') {
		data, err := c.View().ReadFile(o.Str('F'))
		if err != nil {
			c.Die("can't open '%s': %s", o.Str('F'), applet.Strerror(err))
		}
		name, _, _ = strings.Cut(string(data), "\n")
	} else {
		name = o.Args[0]
	}
	if err := c.P.SetHostname(name); err != nil {
		c.Die("sethostname: %s", applet.Strerror(err))
	}
	return 0
}

func runHostname(c *applet.Call) int {
	o := c.Getopt("sidfF:", "short=s", "ip-address=i", "domain=d", "fqdn=f", "file=F:")
	if len(o.Args) > 0 || o.Has('F') {
		return setHostname(c, o)
	}
	name := c.P.Container().Hostname()
	// Up to the first dot, whatever is in /etc/hosts.
	if o.Has('s') {
		name, _, _ = strings.Cut(name, ".")
	}
	if o.Has('f') || o.Has('d') || o.Has('i') {
		full, ip, ok := hostsEntry(c, name)
		if !ok && o.Has('i') {
			c.Die("%s: Host name lookup failure", name)
		}
		switch {
		case o.Has('i'):
			name = ip
		case o.Has('d'):
			_, name, _ = strings.Cut(full, ".")
		default:
			name = full
		}
	}
	// No domain is no line, rather than an empty one.
	if name != "" || !o.Has('d') {
		c.Print(name, "\n")
	}
	return 0
}

// hostsEntry finds a name in /etc/hosts: its first, full name and address.
func hostsEntry(c *applet.Call, name string) (full, ip string, ok bool) {
	// An image without /etc/hosts has no entries, which is no error of its own.
	data, _ := c.View().ReadFile("/etc/hosts")
	for _, line := range strings.Split(string(data), "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) > 1 && slices.Contains(f[1:], name) {
			// The first name is the canonical one, those after it are aliases.
			return f[1], f[0], true
		}
	}
	return name, "", false
}
