package images

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// users are an image's users and groups.
type users struct{ passwd, group [][]string }

// fileReader is whatever has an image's files.
type fileReader interface {
	ReadFile(name string) ([]byte, error)
}

// UsersOf reads the users and groups; without the files there are none.
func UsersOf(v fileReader) users {
	return users{passwd: entries(v, "/etc/passwd"), group: entries(v, "/etc/group")}
}

// entries are the lines of a file, cut at colons; what is too short is left out.
func entries(v fileReader, file string) (out [][]string) {
	data, err := v.ReadFile(file)
	if err != nil {
		return nil
	}
	for _, line := range strings.Split(string(data), "\n") {
		if f := strings.Split(line, ":"); len(f) >= 3 {
			out = append(out, f)
		}
	}
	return out
}

// Home is the home of a user, / if the files say none.
func (u users) Home(uid int) string {
	for _, f := range u.passwd {
		if f[2] == strconv.Itoa(uid) && len(f) > 5 && f[5] != "" {
			return f[5]
		}
	}
	return "/"
}

// assumedUser is the user of an image of which nothing is known but that it isn't root's: that
// of distroless images.
const assumedUser = "65532"

// AssumeUser gives an image a user, present or yet to be pulled, unless the catalogue has it
// or something is known of it.
func (r *Store) AssumeUser(name string) {
	src := r.Source(name)
	if src == nil || !src.Unknown() || src.User != "" {
		return
	}
	src.User = assumedUser
	for _, im := range r.Images {
		if im.Source == src {
			im.describe()
			r.List = nil
			r.Gen++
		}
	}
}

// noSuchName is containerd's error for a user or group that the image has not.
func noSuchName(id, what string) error {
	return fmt.Errorf("failed to create containerd container: mount callback failed on /var/lib/containerd/tmpmounts/containerd-mount%s: no %s found", id[:9], what)
}

// Cred is whom a container's processes run as: the request's user, else the
// image's; with the groups that the image's files give that user.
func (u users) Cred(id string, sc *runtimeapi.LinuxContainerSecurityContext, imageUser string) (kernel.Cred, error) {
	user, group, _ := strings.Cut(imageUser, ":")
	if v := sc.GetRunAsUser(); v != nil {
		user, group = strconv.FormatInt(v.Value, 10), ""
	} else if sc.GetRunAsUsername() != "" {
		user, group = sc.RunAsUsername, ""
	}
	user = cmp.Or(user, "0")
	if v := sc.GetRunAsGroup(); v != nil {
		group = strconv.FormatInt(v.Value, 10)
	}
	var cred kernel.Cred
	name := ""
	uid, err := strconv.Atoi(user)
	numeric := err == nil
	for _, f := range u.passwd {
		if f[0] == user || numeric && f[2] == user {
			name = f[0]
			uid, _ = strconv.Atoi(f[2])
			if len(f) > 3 {
				cred.GID, _ = strconv.Atoi(f[3])
			}
			break
		}
	}
	// A number need not be in /etc/passwd; a name must.
	if !numeric && name == "" {
		return cred, noSuchName(id, "users")
	}
	cred.UID = uid
	if group != "" {
		gid, err := strconv.Atoi(group)
		for _, f := range u.group {
			if err != nil && f[0] == group {
				gid, err = strconv.Atoi(f[2])
			}
		}
		if err != nil {
			return cred, noSuchName(id, "groups")
		}
		cred.GID = gid
	}
	cred.Groups = append(cred.Groups, cred.GID)
	// Strict leaves out the groups that the image's /etc/group gives (KEP-3619).
	if sc.GetSupplementalGroupsPolicy() != runtimeapi.SupplementalGroupsPolicy_Strict && name != "" {
		for _, f := range u.group {
			if gid, err := strconv.Atoi(f[2]); err == nil && len(f) > 3 && slices.Contains(strings.Split(f[3], ","), name) && !slices.Contains(cred.Groups, gid) {
				cred.Groups = append(cred.Groups, gid)
			}
		}
	}
	for _, g := range sc.GetSupplementalGroups() {
		if !slices.Contains(cred.Groups, int(g)) {
			cred.Groups = append(cred.Groups, int(g))
		}
	}
	slices.Sort(cred.Groups) // so containerd hands them over
	return cred, nil
}
