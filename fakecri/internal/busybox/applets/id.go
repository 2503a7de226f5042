package applets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// ID is id, and groups by that name. Names are those of the image's /etc/passwd
// and /etc/group; a number without a name is shown as such.
func ID() applet.Applet { return applet.New(runID, "groups", "[USER]", "id", "[-ugGnr] [USER]") }

func runID(c *applet.Call) int {
	o := c.Getopt("rnugG", "real=r", "name=n", "user=u", "group=g", "groups=G")
	n := &applet.Names{C: c}
	cred := c.P.Cred
	uid, gid, groups := cred.UID, cred.GID, slices.Clone(cred.Groups)
	// groups is id -Gn.
	if c.Name == "groups" {
		o.Add('G')
		o.Add('n')
	}
	// Of another user what the files say, of oneself what the process has.
	if len(o.Args) > 0 {
		found := false
		for _, a := range c.Accounts(applet.PasswdFile) {
			if a.Name == o.Args[0] {
				uid, gid, found = a.Id, a.GID, true
			}
		}
		if !found {
			c.Die("unknown user %s", o.Args[0])
		}
		groups = []int{gid}
		for _, g := range c.Accounts(applet.GroupFile) {
			if slices.Contains(g.Members, o.Args[0]) && g.Id != gid {
				groups = append(groups, g.Id)
			}
		}
	}
	code := 0
	plain := func(id int, known func(int) (string, bool)) string {
		if !o.Has('n') {
			return applet.Itoa(id)
		}
		name, ok := known(id)
		if !ok {
			c.Errorf("unknown ID %d", id)
			code = 1
			return applet.Itoa(id)
		}
		return name
	}
	switch {
	// Alone -n has nothing to name.
	case o.Has('n') && !o.Has('u') && !o.Has('g') && !o.Has('G'):
		c.Usage()
	case o.Has('u'):
		c.Print(plain(uid, n.KnownUser), "\n")
		return code
	case o.Has('g'):
		c.Print(plain(gid, n.KnownGroup), "\n")
		return code
	case o.Has('G'):
		// The group itself comes first, and once.
		list := []string{plain(gid, n.KnownGroup)}
		for _, g := range groups {
			if g != gid {
				list = append(list, plain(g, n.KnownGroup))
			}
		}
		c.Print(strings.Join(list, " "), "\n")
		return code
	}
	// Unlike for plain, a number without a name is no error.
	named := func(id int, known func(int) (string, bool)) string {
		if name, ok := known(id); ok {
			return fmt.Sprintf("%d(%s)", id, name)
		}
		return applet.Itoa(id)
	}
	c.Printf("uid=%s gid=%s", named(uid, n.KnownUser), named(gid, n.KnownGroup))
	for i, g := range groups {
		mark := ","
		if i == 0 {
			mark = " groups="
		}
		c.Print(mark, named(g, n.KnownGroup))
	}
	c.Print("\n")
	return 0
}
