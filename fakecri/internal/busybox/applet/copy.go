package applet

import (
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// Copier is one run of cp, or a move across file systems. Its fields are cp's
// options; a Copier keeps nothing between two files, so hard links become files
// of their own. cp -d and -a set KeepLinks, -p Preserve, -l and -s make links instead of copies.
type Copier struct {
	C                                     *Call
	Recursive, Preserve, KeepLinks, Force bool
	Update, NoClobber, Verbose            bool
	// FollowArgs follows links that the user has named, KeepLinks no others.
	FollowArgs        bool
	Symlink, Hardlink bool
}

// Copy copies one thing, and what is below it; false means that something was
// not, which it has told of. top says that the user has named it. Errors are reported where they
// happen, and the rest is copied all the same.
func (p *Copier) Copy(from, to string, top bool) bool {
	c, v := p.C, p.C.View()
	c.Spend(4096)
	// Whether a link is copied as a link or as what it leads to.
	stat := v.Stat
	if p.KeepLinks && !(top && p.FollowArgs) {
		stat = v.Lstat
	}
	fi, err := stat(from)
	if err != nil {
		c.Errorf("can't stat '%s': %s", from, Strerror(err))
		return false
	}
	old, oldErr := v.Lstat(to)
	if oldErr == nil && !fi.IsDir() {
		if p.NoClobber {
			return true
		}
		if target, err := v.Stat(to); err == nil {
			// Copying a file onto itself would empty it first.
			if sameFile(fi, target) && c.SamePath(from, to) {
				c.Errorf("'%s' and '%s' are the same file", from, to)
				return false
			}
			if p.Update && !fi.ModTime().After(target.ModTime()) {
				return true
			}
		}
	}
	if p.Verbose {
		c.Printf("'%s' -> '%s'\n", from, to)
	}
	switch {
	case fi.IsDir():
		if !p.dir(from, to, fi) {
			return false
		}
	case fi.Mode()&fs.ModeSymlink != 0, p.Symlink, p.Hardlink:
		// A link can't be made over something.
		if oldErr == nil && !old.IsDir() {
			_ = v.Remove(to)
		}
		link := v.Symlink
		target := from
		if fi.Mode()&fs.ModeSymlink != 0 {
			target, _ = v.Readlink(from)
		} else if p.Hardlink {
			link = v.Link
		}
		if err := link(target, to); err != nil {
			c.Errorf("can't create symlink '%s' to '%s': %s", to, target, Strerror(err))
			return false
		}
		return true
	default:
		if !p.file(from, to, fi) {
			return false
		}
	}
	// Errors are not told of: who is not root can't keep an owner. The order matters: chown may
	// clear setuid, and chmod changes no time.
	if p.Preserve {
		sys := SysOf(fi)
		_ = v.Chown(to, sys.UID, sys.GID)
		_ = v.Chmod(to, fi.Mode())
		_ = v.Chtimes(to, fi.ModTime())
	}
	return true
}

// sameFile compares what there is of identity: there is no device number, so
// the inode alone would mix up two file systems. Two files that agree in all three are hardly
// ever different.
func sameFile(a, b fs.FileInfo) bool {
	sa, oka := a.Sys().(*memfs.Sys)
	sb, okb := b.Sys().(*memfs.Sys)
	return oka && okb && sa.Ino == sb.Ino && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// SamePath reports whether two paths lead to one place.
func (c *Call) SamePath(a, b string) bool {
	x, errX := c.View().EvalSymlinks(a)
	y, errY := c.View().EvalSymlinks(b)
	return errX == nil && errY == nil && x == y
}

// dir copies a directory. One that is there is filled; one that contains the
// copy would be copied for ever, and is left out. Errors in it leave the rest of the directory to
// be copied.
func (p *Copier) dir(from, to string, fi fs.FileInfo) bool {
	c, v := p.C, p.C.View()
	if !p.Recursive {
		c.Errorf("omitting directory '%s'", from)
		return false
	}
	list, err := v.ReadDir(from)
	if err != nil {
		c.Errorf("can't open '%s': %s", from, Strerror(err))
		return false
	}
	if target, err := v.Stat(to); err == nil {
		if !target.IsDir() {
			c.Errorf("target '%s' is not a directory", to)
			return false
		}
		// So that it can be filled, whatever its mode; Preserve sets that at the end.
	} else if err := v.Mkdir(to, fi.Mode().Perm()|0o700); err != nil {
		c.Errorf("can't create directory '%s': %s", to, Strerror(err))
		return false
	}
	inside, _ := v.EvalSymlinks(to)
	whole, _ := v.EvalSymlinks(from)
	if inside == whole || strings.HasPrefix(inside, whole+"/") {
		c.Errorf("recursion detected, omitting directory '%s'", from)
		return false
	}
	ok := true
	for _, e := range list {
		ok = p.Copy(Join(from, e.Name()), Join(to, e.Name()), false) && ok
	}
	return ok
}

// file copies a regular file, or reads whatever else it is: cp of /dev/zero
// fills the disk. With Force a file that can't be opened is removed and made
// anew. What is written before an error stays.
func (p *Copier) file(from, to string, fi fs.FileInfo) bool {
	c, v := p.C, p.C.View()
	in, err := v.Open(from, os.O_RDONLY, 0)
	if err != nil {
		c.Errorf("can't open '%s': %s", from, Strerror(err))
		return false
	}
	defer in.Close()
	flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	out, err := v.Open(to, flag, fi.Mode().Perm())
	if err != nil && p.Force && v.Remove(to) == nil {
		out, err = v.Open(to, flag|os.O_EXCL, fi.Mode().Perm())
	}
	if err != nil {
		c.Errorf("can't create '%s': %s", to, Strerror(err))
		return false
	}
	err = c.Pour(out, in, -1)
	out.Close()
	if err != nil {
		c.Errorf("%s", err.Error())
		return false
	}
	return true
}

// copyError says which side of a copy failed, in busybox's words. It wraps the errno, so callers
// can ask for EPIPE.
type copyError struct {
	what string
	err  error
}

// Error is the message as the applet shows it.
func (e *copyError) Error() string { return e.what + ": " + Strerror(e.err) }

func (e *copyError) Unwrap() error { return e.err }

// Pour copies up to n bytes, or all if n is negative, from one open file to
// another; runs of zeros are handed on as such where that is possible. dd of /dev/zero to a file
// so costs neither time nor memory of the simulator.
func (c *Call) Pour(out, in kernel.File, n int64) error {
	if z, ok := out.(kernel.ZeroWriter); ok && kernel.ReadsZeros(in) {
		for n != 0 {
			// In chunks, so that a signal can end it between two of them.
			chunk := int64(16 << 20)
			if n >= 0 {
				chunk = min(chunk, n)
				n -= chunk
			}
			if err := z.WriteZeros(c.Ctx, chunk); err != nil {
				return &copyError{"write error", err}
			}
			c.Spend(chunk)
		}
		return nil
	}
	buf := make([]byte, 64<<10)
	for n != 0 {
		b := buf
		if n >= 0 && n < int64(len(b)) {
			b = b[:n]
		}
		// What came with an error is written first.
		got, err := (Stream{c, in}).Read(b)
		if got > 0 {
			if n >= 0 {
				n -= int64(got)
			}
			if _, werr := (Stream{c, out}).Write(b[:got]); werr != nil {
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
