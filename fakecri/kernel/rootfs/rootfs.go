// Package rootfs fills file systems with what images have: the files of a
// busybox image, or of one that was made of a single program. The kernel runs
// what it finds there ([kernel.ELF]), and knows no image.
package rootfs

import (
	"io/fs"
	"path"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// Busybox fills a file system with what a busybox image has: the
// applets in /bin, /etc/passwd and /etc/group, /root, /home, /tmp, /var.
// FS.Freeze makes an image of it that all nodes and containers can share.
func Busybox(f *memfs.FS, applets []string) error {
	for _, d := range []struct {
		name string
		mode fs.FileMode
	}{
		{"/bin", 0o755}, {"/dev", 0o755}, {"/etc", 0o755}, {"/home", 0o755}, {"/proc", 0o755}, {"/root", 0o700},
		{"/sys", 0o755}, {"/tmp", fs.ModeSticky | 0o777}, {"/usr", 0o755}, {"/usr/sbin", 0o755}, {"/usr/bin", 0o755},
		{"/var", 0o755}, {"/var/spool", 0o755}, {"/var/spool/mail", 0o755}, {"/var/www", 0o755},
	} {
		if err := f.MkdirAll(d.name, d.mode.Perm()); err != nil {
			return err
		}
		if err := f.Chmod(d.name, d.mode); err != nil {
			return err
		}
	}
	for name, content := range map[string]string{ //drydock:unordered each file by itself
		"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/false\nbin:x:2:2:bin:/bin:/bin/false\n" +
			"sys:x:3:3:sys:/dev:/bin/false\nsync:x:4:100:sync:/bin:/bin/sync\nmail:x:8:8:mail:/var/spool/mail:/bin/false\n" +
			"www-data:x:33:33:www-data:/var/www:/bin/false\noperator:x:37:37:Operator:/var:/bin/false\nnobody:x:65534:65534:nobody:/home:/bin/false\n",
		"/etc/group": "root:x:0:\ndaemon:x:1:\nbin:x:2:\nsys:x:3:\nadm:x:4:\ntty:x:5:\ndisk:x:6:\nlp:x:7:\nmail:x:8:\nkmem:x:9:\nwheel:x:10:root\n" +
			"cdrom:x:11:\ndialout:x:18:\nfloppy:x:19:\nvideo:x:28:\naudio:x:29:\ntape:x:32:\nwww-data:x:33:\noperator:x:37:\nutmp:x:43:\nplugdev:x:46:\nstaff:x:50:\nusers:x:100:\nnogroup:x:65534:\n",
		"/etc/shadow":        "root:*:10933:0:99999:7:::\n",
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
		"/etc/hosts":         "127.0.0.1\tlocalhost\n",
		"/etc/hostname":      "\n",
		"/etc/resolv.conf":   "",
	} {
		if err := f.WriteFile(name, []byte(content), 0o644); err != nil {
			return err
		}
	}
	if err := installBusybox(f, applets); err != nil {
		return err
	}
	return f.Symlink("../../bin/env", "/usr/bin/env")
}

// Bare fills a file system with what an image has that was made of one
// program: the applets in /bin, /tmp, and the directories that runc mounts on.
// Nobody has a name in it.
func Bare(f *memfs.FS, applets []string) error {
	for _, d := range []string{"/bin", "/dev", "/etc", "/proc", "/sys", "/tmp"} {
		if err := f.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	if err := f.Chmod("/tmp", fs.ModeSticky|0o777); err != nil {
		return err
	}
	return installBusybox(f, applets)
}

// installBusybox puts busybox and its applets into /bin.
func installBusybox(f *memfs.FS, applets []string) error {
	body := kernel.ELF("busybox")
	for _, a := range append([]string{"busybox"}, applets...) {
		if err := f.WriteShared(path.Join("/bin", a), body, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// BusyboxImage is Busybox as an image.
func BusyboxImage(applets []string) (*memfs.Image, error) {
	f := memfs.New(memfs.Options{Tmpfs: []string{}})
	if err := Busybox(f, applets); err != nil {
		return nil, err
	}
	return f.Freeze(), nil
}
