package images

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox"
	"github.com/drydock-sim/drydock/fakecri/internal/shell"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/fakecri/kernel/rootfs"
	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// Trees are the files of images, the applets that they have, and what is said of
// them. Runtimes on
// several loops may share one, so that a thousand nodes have one copy of busybox: it
// must only be handed to New while none of them runs.
type Trees struct {
	images map[string]*memfs.Image
	// applets are all programs but the shell, names those of busybox.
	applets   kernel.Commands
	names     []string
	Table     *imageTable
	catalogue *catalogue
}

// NewTrees returns what New fills.
func NewTrees() *Trees {
	return newTrees(newCatalogue())
}

// newTrees returns trees of a store's own, or those that stores will share.
func newTrees(c *catalogue) *Trees {
	return &Trees{images: map[string]*memfs.Image{}, Table: newImageTable(), catalogue: c}
}

// DebianApplets lists the commands of Debian's busybox that containers can run,
// sorted; the shell is not among them.
func DebianApplets() []string {
	return slices.DeleteFunc(busybox.Applets(), func(name string) bool { return !busybox.Debian(name) })
}

// The names of trees. That of an image with stated commands is their list.
const (
	treeBusybox = "busybox"
	treeAlpine  = "alpine"
	treeDebian  = "debian"
	treePause   = "pause"
	// treeDistroless has no programs, treeCurl is alpine with curl.
	treeDistroless = "distroless"
	treeCurl       = "curl"
	// treePredefinedGroup is busybox with a user whom a group has.
	treePredefinedGroup = "predefined-group"
)

// prepare makes the standard trees, and those of a catalogue.
func (t *Trees) prepare(l *loop.Loop, images []Image) {
	if t.applets == nil {
		t.applets = busybox.Commands()
		t.names = append(busybox.Applets(), "ash", "sh")
		sort.Strings(t.names)
		for _, name := range append(testTrees(), treeBusybox, treeAlpine, treeDebian, treePause, treeDistroless, treeCurl) {
			t.Tree(l, name, nil)
		}
	}
	for i := range images {
		if images[i].Commands != nil {
			t.Tree(l, commandsTree(images[i].Commands, images[i].Bare), images[i].Commands)
		}
		t.prepareFiles(l, images[i])
	}
}

// shells are the names of the interpreted shell.
var shells = []string{"sh", "ash", "bash", "dash"}

// commandsTree is the name of the tree of an image with stated commands.
func commandsTree(commands []string, bare bool) string {
	prefix := "commands\x00"
	if bare {
		prefix = barePrefix
	}
	return prefix + strings.Join(commands, "\x00")
}

// barePrefix begins the names of trees without /etc/passwd.
const barePrefix = "bare\x00"

// Tree returns a tree, and makes it if it is not there.
func (t *Trees) Tree(l *loop.Loop, name string, commands []string) *memfs.Image {
	if im := t.images[name]; im != nil {
		return im
	}
	f := memfs.New(memfs.Options{Loop: l, Tmpfs: []string{}})
	var err error
	switch name {
	case treeBusybox:
		err = rootfs.Busybox(f, t.names)
	case treeAlpine, treeDebian, treeCurl:
		err = t.populateLinux(f, name)
	case treeDistroless:
		err = populateDistroless(f)
	case treePredefinedGroup:
		err = t.populatePredefinedGroup(f)
	case treePause:
		err = f.WriteFile("/pause", kernel.ELF("pause"), 0o755)
	default:
		if strings.HasPrefix(name, treeActor) {
			err = populateActor(f, name)
			break
		}
		err = t.populateStated(f, commands, strings.HasPrefix(name, barePrefix))
	}
	if err != nil {
		panic("fakecri: an image's tree: " + err.Error())
	}
	t.images[name] = f.Freeze()
	return t.images[name]
}

// link makes symbolic links to programs in /bin.
func (t *Trees) link(f *memfs.FS, dir string, names ...string) {
	if f.MkdirAll(dir, 0o755) != nil {
		return
	}
	for _, n := range names {
		_ = f.Symlink("/bin/"+n, path.Join(dir, n))
	}
}

// populateLinux makes the tree of a distribution: busybox under the paths and with
// the users that programs look for.
func (t *Trees) populateLinux(f *memfs.FS, name string) error {
	if err := rootfs.Busybox(f, t.names); err != nil {
		return err
	}
	release := "3.20.0\n"
	file := "/etc/alpine-release"
	system := "NAME=\"Alpine Linux\"\nID=alpine\nVERSION_ID=3.20.0\nPRETTY_NAME=\"Alpine Linux v3.20\"\n"
	users := "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\nbin:x:2:2:bin:/bin:/usr/sbin/nologin\n" +
		"www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\nnginx:x:101:101:nginx:/nonexistent:/bin/false\nguest:x:405:100:guest:/dev/null:/sbin/nologin\n" +
		"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
	groups := "root:x:0:\ndaemon:x:1:\nbin:x:2:\nwww-data:x:33:\nusers:x:100:\nnginx:x:101:\nnogroup:x:65534:\n"
	if name == treeDebian {
		release, file = "12.5\n", "/etc/debian_version"
		system = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\nID=debian\n"
		for _, n := range []string{"bash", "dash"} {
			if err := f.WriteFile("/bin/"+n, kernel.ELF("sh"), 0o755); err != nil {
				return err
			}
		}
	}
	t.link(f, "/usr/bin", t.names...)
	if name != treeAlpine {
		for _, n := range busybox.Others() {
			if err := f.WriteFile("/usr/bin/"+n, kernel.ELF(n), 0o755); err != nil {
				return err
			}
		}
	}
	if name == treeDebian {
		t.link(f, "/usr/bin", "bash", "dash")
	}
	for file, text := range map[string]string{file: release, "/etc/os-release": system, "/etc/passwd": users, "/etc/group": groups} { //drydock:unordered each file is written once
		if err := f.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// populateDistroless makes a tree with users and no programs.
func populateDistroless(f *memfs.FS) error {
	for _, dir := range []string{"/bin", "/dev", "/etc", "/home/nonroot", "/proc", "/root", "/sys", "/tmp", "/usr/bin", "/var"} {
		if err := f.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := f.Chmod("/tmp", fs.ModeSticky|0o777); err != nil {
		return err
	}
	users := "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
	if err := f.WriteFile("/etc/passwd", []byte(users), 0o644); err != nil {
		return err
	}
	return f.WriteFile("/etc/group", []byte("root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n"), 0o644)
}

// populatePredefinedGroup makes busybox with a user whom the image's files put into a
// group, which cri-tools checks.
func (t *Trees) populatePredefinedGroup(f *memfs.FS) error {
	if err := rootfs.Busybox(f, t.names); err != nil {
		return err
	}
	for file, line := range map[string]string{ //drydock:unordered each file by itself
		"/etc/passwd": "default-user:x:1000:1000::/home/default-user:/bin/sh\n",
		"/etc/group":  "default-user:x:1000:\ngroup-defined-in-image:x:50000:default-user\n",
	} {
		data, err := f.ReadFile(file)
		if err == nil {
			err = f.WriteFile(file, append(data, line...), 0o644)
		}
		if err != nil {
			return err
		}
	}
	if err := f.MkdirAll("/home/default-user", 0o755); err != nil {
		return err
	}
	return f.Chown("/home/default-user", 1000, 1000)
}

// populateStated makes a tree with just the commands that an image states:
// names, which are in /bin, or absolute paths.
func (t *Trees) populateStated(f *memfs.FS, commands []string, bare bool) error {
	applets := lists.Filter(commands, func(c string) bool { return !path.IsAbs(c) && t.Has(c) })
	populate := rootfs.Busybox
	if bare {
		populate = rootfs.Bare
	}
	if err := populate(f, applets); err != nil {
		return err
	}
	for _, c := range commands {
		file := c
		if !path.IsAbs(c) {
			file = "/bin/" + c
		}
		if _, err := f.Lstat(file); err == nil {
			continue
		}
		if err := f.MkdirAll(path.Dir(file), 0o755); err != nil {
			return err
		}
		if err := f.WriteFile(file, kernel.ELF(path.Base(c)), fs.FileMode(0o755)); err != nil {
			return err
		}
	}
	return nil
}

// Has reports whether a command name is one that can be interpreted.
func (t *Trees) Has(name string) bool { return t.applets[name] != nil || slices.Contains(shells, name) }

// commands returns what programs do, with a shell for one loop.
func (t *Trees) commands(noElide bool) kernel.Commands {
	out := make(kernel.Commands, len(t.applets)+len(shells))
	maps.Copy(out, t.applets)
	sh := shell.New(shell.Options{NoElide: noElide})
	for _, name := range shells {
		out[name] = sh
	}
	return out
}
