package applet

import (
	"strconv"
	"strings"
)

// account is a line of /etc/passwd or /etc/group. Members are of groups alone, home of users.
type account struct {
	Name    string
	Id, GID int
	Members []string
	home    string
}

// Accounts reads /etc/passwd or /etc/group; what is not there is empty. Lines
// that are none are passed over, as getpwent(3) does. They are the container's own files, so the
// names are those of the image.
func (c *Call) Accounts(file string) []account {
	data, err := c.View().ReadFile(file)
	if err != nil {
		return nil
	}
	var out []account
	for _, line := range strings.Split(string(data), "\n") {
		f := strings.Split(line, ":")
		if len(f) < 3 {
			continue
		}
		id, err := strconv.Atoi(f[2])
		if err != nil {
			continue
		}
		a := account{Name: f[0], Id: id}
		// The fourth field is a user's group, or a group's members.
		if len(f) > 3 {
			a.GID, _ = strconv.Atoi(f[3])
			a.Members = strings.Split(f[3], ",")
		}
		if len(f) > 6 {
			a.home = f[5]
		}
		out = append(out, a)
	}
	return out
}

const (
	PasswdFile = "/etc/passwd"
	GroupFile  = "/etc/group"
)

// Names finds the names of IDs, reading each file once. ls -l of a large directory would read
// them for each file otherwise.
type Names struct {
	C             *Call
	users, groups map[int]string
}

// User returns a user's name, or the number as text.
func (n *Names) User(id int) string { return n.find(&n.users, PasswdFile, id) }

// Group returns a group's name, or the number as text.
func (n *Names) Group(id int) string { return n.find(&n.groups, GroupFile, id) }

// KnownUser and KnownGroup report whether an ID has a name.
func (n *Names) KnownUser(id int) (string, bool) { n.User(id); s, ok := n.users[id]; return s, ok }

func (n *Names) KnownGroup(id int) (string, bool) { n.Group(id); s, ok := n.groups[id]; return s, ok }

// find looks an ID up in a file, which it reads the first time. The first of
// several names counts.
func (n *Names) find(m *map[int]string, file string, id int) string {
	if *m == nil {
		*m = map[int]string{}
		for _, a := range n.C.Accounts(file) {
			if _, ok := (*m)[a.Id]; !ok {
				(*m)[a.Id] = a.Name
			}
		}
	}
	if s, ok := (*m)[id]; ok {
		return s
	}
	return strconv.Itoa(id)
}

// Lookup finds an account by name or number; ok is false if there is none. A
// number needs no entry. It is for chown and its like, where a number may belong to nobody.
func (c *Call) Lookup(file, name string) (id int, ok bool) {
	for _, a := range c.Accounts(file) {
		if a.Name == name {
			return a.Id, true
		}
	}
	n, err := strconv.Atoi(name)
	return n, err == nil && n >= 0
}
