package applets

import (
	"io/fs"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Chown is chown and chgrp. USER: means the user's own group by /etc/passwd;
// USER.GROUP is taken, too, unless there is a colon. Links are changed
// themselves when they are met or with -h. -v, -c and -f do nothing.
func Chown() applet.Applet {
	return applet.New(runChown, "chgrp", "[-Rh] GROUP FILE...", "chown", "[-Rh] USER[:[GRP]] FILE...")
}

func runChown(c *applet.Call) int {
	o := c.Getopt("Rhvcf", "recursive=R", "no-dereference=h", "verbose=v", "changes=c", "silent=f", "quiet=f")
	if len(o.Args) < 2 {
		c.Usage()
	}
	// -1 leaves a number as it is, as for chown(2).
	uid, gid := -1, -1
	user, group, hasGroup := strings.Cut(o.Args[0], ":")
	// chgrp's operand is a group as a whole: neither colon nor dot separates anything in
	// it.
	if c.Name == "chgrp" {
		user, group, hasGroup = "", o.Args[0], true
	} else if !hasGroup {
		// BusyBox still has what POSIX took out: a dot between the two.
		if u, g, ok := strings.Cut(user, "."); ok {
			user, group, hasGroup = u, g, true
		}
	}
	var ok bool
	if user != "" {
		if uid, ok = c.Lookup(applet.PasswdFile, user); !ok {
			c.Die("unknown user %s", user)
		}
		// USER: is the user with the group of /etc/passwd.
		if hasGroup && group == "" {
			for _, a := range c.Accounts(applet.PasswdFile) {
				if a.Id == uid {
					gid = a.GID
				}
			}
		}
	}
	if hasGroup && group != "" {
		if gid, ok = c.Lookup(applet.GroupFile, group); !ok {
			c.Die("unknown group %s", group)
		}
	}
	code := 0
	for _, name := range o.Args[1:] {
		if !c.EachBelow(name, o.Has('R'), func(name string, fi fs.FileInfo) error {
			if o.Has('h') || fi.Mode()&fs.ModeSymlink != 0 {
				return c.View().Lchown(name, uid, gid)
			}
			return c.View().Chown(name, uid, gid)
		}) {
			code = 1
		}
	}
	return code
}
