package busybox

import (
	"strconv"
	"strings"
)

// account is a line of /etc/passwd or /etc/group.
type account struct {
	name    string
	id, gid int
	members []string
	home    string
}

// accounts reads /etc/passwd or /etc/group; what is not there is empty.
func (c *call) accounts(file string) []account {
	data, err := c.view().ReadFile(file)
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
		a := account{name: f[0], id: id}
		if len(f) > 3 {
			a.gid, _ = strconv.Atoi(f[3])
			a.members = strings.Split(f[3], ",")
		}
		if len(f) > 6 {
			a.home = f[5]
		}
		out = append(out, a)
	}
	return out
}

const (
	passwdFile = "/etc/passwd"
	groupFile  = "/etc/group"
)

// names finds the names of IDs, reading each file once.
type names struct {
	c             *call
	users, groups map[int]string
}

func (n *names) user(id int) string  { return n.find(&n.users, passwdFile, id) }
func (n *names) group(id int) string { return n.find(&n.groups, groupFile, id) }

// knownUser and knownGroup tell whether an ID has a name.
func (n *names) knownUser(id int) (string, bool)  { n.user(id); s, ok := n.users[id]; return s, ok }
func (n *names) knownGroup(id int) (string, bool) { n.group(id); s, ok := n.groups[id]; return s, ok }

func (n *names) find(m *map[int]string, file string, id int) string {
	if *m == nil {
		*m = map[int]string{}
		for _, a := range n.c.accounts(file) {
			if _, ok := (*m)[a.id]; !ok {
				(*m)[a.id] = a.name
			}
		}
	}
	if s, ok := (*m)[id]; ok {
		return s
	}
	return strconv.Itoa(id)
}

// lookup finds an account by name or number; ok is false if there is none. A
// number needs no entry.
func (c *call) lookup(file, name string) (id int, ok bool) {
	for _, a := range c.accounts(file) {
		if a.name == name {
			return a.id, true
		}
	}
	n, err := strconv.Atoi(name)
	return n, err == nil && n >= 0
}
