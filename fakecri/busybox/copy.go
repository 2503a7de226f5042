package busybox

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// copier is one run of cp, or a move across file systems.
type copier struct {
	c                                     *call
	recursive, preserve, keepLinks, force bool
	update, noClobber, verbose            bool
	followArgs                            bool
	symlink, hardlink                     bool
}

func runCp(c *call) int {
	o := c.getopt("pdRfilsLHarPvuTt:n", "archive=a", "force=f", "interactive=i", "link=l", "dereference=L", "no-dereference=P",
		"recursive=R", "symbolic-link=s", "no-target-directory=T", "target-directory=t:", "verbose=v", "update=u", "preserve=p", "no-clobber=n")
	args := o.args
	dest := ""
	if o.has('t') {
		dest = o.str('t')
	} else if len(args) >= 2 {
		dest = args[len(args)-1]
		args = args[:len(args)-1]
	}
	if len(args) == 0 || dest == "" && !o.has('t') {
		c.usage()
	}
	p := &copier{
		c: c, recursive: o.has('R') || o.has('r') || o.has('a'), preserve: o.has('p') || o.has('a'), force: o.has('f'),
		update: o.has('u'), noClobber: o.has('n'), verbose: o.has('v'), symlink: o.has('s'), hardlink: o.has('l'),
	}
	p.keepLinks = o.has('d') || o.has('P') || o.has('a') || p.recursive
	if o.has('L') {
		p.keepLinks = false
	}
	p.followArgs = !p.keepLinks || o.has('H')
	fi, err := c.view().Stat(dest)
	intoDir := err == nil && fi.IsDir() && !o.has('T')
	if len(args) == 1 && !intoDir && !o.has('t') {
		if p.copy(args[0], dest, true) {
			return 0
		}
		return 1
	}
	code := 0
	for _, a := range args {
		if !p.copy(a, join(dest, base(strings.TrimRight(a, "/"))), true) {
			code = 1
		}
	}
	return code
}

// copy copies one thing, and what is below it.
func (p *copier) copy(from, to string, top bool) bool {
	c, v := p.c, p.c.view()
	c.spend(4096)
	stat := v.Stat
	if p.keepLinks && !(top && p.followArgs) {
		stat = v.Lstat
	}
	fi, err := stat(from)
	if err != nil {
		c.errorf("can't stat '%s': %s", from, strerror(err))
		return false
	}
	old, oldErr := v.Lstat(to)
	if oldErr == nil && !fi.IsDir() {
		if p.noClobber {
			return true
		}
		if target, err := v.Stat(to); err == nil {
			if sameFile(fi, target) && c.samePath(from, to) {
				c.errorf("'%s' and '%s' are the same file", from, to)
				return false
			}
			if p.update && !fi.ModTime().After(target.ModTime()) {
				return true
			}
		}
	}
	if p.verbose {
		c.printf("'%s' -> '%s'\n", from, to)
	}
	switch {
	case fi.IsDir():
		if !p.dir(from, to, fi) {
			return false
		}
	case fi.Mode()&fs.ModeSymlink != 0, p.symlink, p.hardlink:
		if oldErr == nil && !old.IsDir() {
			_ = v.Remove(to)
		}
		link := v.Symlink
		target := from
		if fi.Mode()&fs.ModeSymlink != 0 {
			target, _ = v.Readlink(from)
		} else if p.hardlink {
			link = v.Link
		}
		if err := link(target, to); err != nil {
			c.errorf("can't create symlink '%s' to '%s': %s", to, target, strerror(err))
			return false
		}
		return true
	default:
		if !p.file(from, to, fi) {
			return false
		}
	}
	if p.preserve {
		sys := sysOf(fi)
		_ = v.Chown(to, sys.UID, sys.GID)
		_ = v.Chmod(to, fi.Mode())
		_ = v.Chtimes(to, fi.ModTime())
	}
	return true
}

func sameFile(a, b fs.FileInfo) bool {
	sa, oka := a.Sys().(*memfs.Sys)
	sb, okb := b.Sys().(*memfs.Sys)
	return oka && okb && sa.Ino == sb.Ino && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// samePath tells whether two paths lead to one place.
func (c *call) samePath(a, b string) bool {
	x, errX := c.view().EvalSymlinks(a)
	y, errY := c.view().EvalSymlinks(b)
	return errX == nil && errY == nil && x == y
}

func (p *copier) dir(from, to string, fi fs.FileInfo) bool {
	c, v := p.c, p.c.view()
	if !p.recursive {
		c.errorf("omitting directory '%s'", from)
		return false
	}
	list, err := v.ReadDir(from)
	if err != nil {
		c.errorf("can't open '%s': %s", from, strerror(err))
		return false
	}
	if target, err := v.Stat(to); err == nil {
		if !target.IsDir() {
			c.errorf("target '%s' is not a directory", to)
			return false
		}
	} else if err := v.Mkdir(to, fi.Mode().Perm()|0o700); err != nil {
		c.errorf("can't create directory '%s': %s", to, strerror(err))
		return false
	}
	inside, _ := v.EvalSymlinks(to)
	whole, _ := v.EvalSymlinks(from)
	if inside == whole || strings.HasPrefix(inside, whole+"/") {
		c.errorf("recursion detected, omitting directory '%s'", from)
		return false
	}
	ok := true
	for _, e := range list {
		ok = p.copy(join(from, e.Name()), join(to, e.Name()), false) && ok
	}
	return ok
}

func (p *copier) file(from, to string, fi fs.FileInfo) bool {
	c, v := p.c, p.c.view()
	in, err := v.Open(from, os.O_RDONLY, 0)
	if err != nil {
		c.errorf("can't open '%s': %s", from, strerror(err))
		return false
	}
	defer in.Close()
	flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	out, err := v.Open(to, flag, fi.Mode().Perm())
	if err != nil && p.force {
		if v.Remove(to) == nil {
			out, err = v.Open(to, flag|os.O_EXCL, fi.Mode().Perm())
		}
	}
	if err != nil {
		c.errorf("can't create '%s': %s", to, strerror(err))
		return false
	}
	err = c.pour(out, in, -1)
	out.Close()
	if err != nil {
		c.errorf("%s", err.Error())
		return false
	}
	return true
}

// copyError says which side of a copy failed, in busybox's words.
type copyError struct {
	what string
	err  error
}

func (e *copyError) Error() string { return e.what + ": " + strerror(e.err) }
func (e *copyError) Unwrap() error { return e.err }

// pour copies up to n bytes, or all if n is negative, from one open file to
// another; runs of zeros are handed on as such where that is possible.
func (c *call) pour(out, in kernel.File, n int64) error {
	if z, ok := out.(kernel.ZeroWriter); ok && kernel.ReadsZeros(in) {
		for n != 0 {
			chunk := int64(16 << 20)
			if n >= 0 {
				chunk = min(chunk, n)
				n -= chunk
			}
			if err := z.WriteZeros(c.ctx, chunk); err != nil {
				return &copyError{"write error", err}
			}
			c.spend(chunk)
		}
		return nil
	}
	buf := make([]byte, 64<<10)
	for n != 0 {
		b := buf
		if n >= 0 && n < int64(len(b)) {
			b = b[:n]
		}
		got, err := (stream{c, in}).Read(b)
		if got > 0 {
			if n >= 0 {
				n -= int64(got)
			}
			if _, werr := (stream{c, out}).Write(b[:got]); werr != nil {
				return &copyError{"write error", werr}
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return &copyError{"read error", err}
		}
	}
	return nil
}

func runMv(c *call) int {
	o := c.getopt("finvTt:", "force=f", "interactive=i", "no-clobber=n", "no-target-directory=T", "target-directory=t:", "verbose=v")
	args := o.args
	dest := o.str('t')
	if !o.has('t') {
		if len(args) < 2 {
			c.usage()
		}
		dest = args[len(args)-1]
		args = args[:len(args)-1]
	}
	fi, err := c.view().Stat(dest)
	intoDir := err == nil && fi.IsDir() && !o.has('T')
	code := 0
	for _, from := range args {
		to := dest
		if intoDir || len(args) > 1 {
			to = join(dest, base(strings.TrimRight(from, "/")))
		}
		if !c.move(from, to, o.has('n')) {
			code = 1
		}
	}
	return code
}

func (c *call) move(from, to string, noClobber bool) bool {
	v := c.view()
	if noClobber {
		if _, err := v.Lstat(to); err == nil {
			return true
		}
	}
	err := v.Rename(from, to)
	if err == nil {
		return true
	}
	if !errors.Is(err, syscall.EXDEV) {
		c.errorf("can't rename '%s': %s", from, strerror(err))
		return false
	}
	p := &copier{c: c, recursive: true, preserve: true, keepLinks: true, force: true}
	if fi, err := v.Lstat(to); err == nil {
		src, serr := v.Lstat(from)
		if serr == nil && fi.IsDir() != src.IsDir() {
			c.errorf("can't rename '%s': %s", from, strerror(syscall.EISDIR))
			return false
		}
		if err := v.Remove(to); err != nil {
			c.errorf("can't remove '%s': %s", to, strerror(err))
			return false
		}
	}
	return p.copy(from, to, true) && c.remove(from, true, true)
}
