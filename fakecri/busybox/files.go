package busybox

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"syscall"
)

func runMkdir(c *call) int {
	o := c.getopt("m:pv", "mode=m:", "parents=p", "verbose=v")
	if len(o.args) == 0 {
		c.usage()
	}
	mode, explicit := fs.FileMode(0o777), o.has('m')
	if explicit {
		m, ok := parseMode(o.str('m'), fs.ModeDir|0o777, c.p.Umask)
		if !ok {
			c.die("invalid mode '%s'", o.str('m'))
		}
		mode = m
	}
	code := 0
	for _, name := range o.args {
		if at, err := c.mkdir(name, mode.Perm(), o.has('p')); err != nil {
			c.errorf("can't create directory '%s': %s", at, strerror(err))
			code = 1
			continue
		}
		if explicit {
			if err := c.view().Chmod(name, mode); err != nil {
				c.errorf("can't set permissions of directory '%s': %s", name, strerror(err))
				code = 1
			}
		}
	}
	return code
}

func runMkfifo(c *call) int {
	o := c.getopt("m:Z:", "mode=m:")
	if len(o.args) == 0 {
		c.usage()
	}
	mode := fs.FileMode(0o666)
	if o.has('m') {
		m, ok := parseMode(o.str('m'), 0o666, c.p.Umask)
		if !ok {
			c.die("invalid mode '%s'", o.str('m'))
		}
		mode = m
	}
	code := 0
	for _, name := range o.args {
		if err := c.view().Mkfifo(name, mode); err != nil {
			c.errorf("%s: %s", name, strerror(err))
			code = 1
		}
	}
	return code
}

// mkdir makes a directory, with parents if asked; on failure it tells which.
func (c *call) mkdir(name string, perm fs.FileMode, parents bool) (string, error) {
	if !parents {
		return name, c.view().Mkdir(name, perm)
	}
	for i := 1; i <= len(name); i++ {
		if i < len(name) && (name[i] != '/' || name[i-1] == '/') {
			continue
		}
		part := name[:i]
		err := c.view().Mkdir(part, perm)
		if err == nil {
			continue
		}
		if fi, serr := c.view().Stat(part); serr != nil || !fi.IsDir() {
			if i < len(name) {
				part += "/"
				if errors.Is(err, syscall.EEXIST) {
					err = syscall.ENOTDIR
				}
			}
			return part, err
		}
	}
	return name, nil
}

func runRmdir(c *call) int {
	o := c.getopt("p", "parents=p", "ignore-fail-on-non-empty=1")
	if len(o.args) == 0 {
		c.usage()
	}
	code := 0
	for _, name := range o.args {
		for dir := name; ; {
			fi, err := c.view().Lstat(dir)
			if err == nil && !fi.IsDir() {
				err = syscall.ENOTDIR
			}
			if err == nil {
				err = c.view().Remove(dir)
			}
			if err != nil {
				c.errorf("'%s': %s", dir, strerror(err))
				code = 1
				break
			}
			up := strings.LastIndexByte(strings.TrimRight(dir, "/"), '/')
			if !o.has('p') || up <= 0 {
				break
			}
			dir = dir[:up]
		}
	}
	return code
}

func runRm(c *call) int {
	o := c.getopt("fiRrv", "recursive=r", "force=f", "interactive=i", "verbose=v")
	force := o.last("fi") == 'f'
	if len(o.args) == 0 && !force {
		c.usage()
	}
	code := 0
	for _, name := range o.args {
		b := base(strings.TrimRight(name, "/"))
		if b == "." || b == ".." {
			c.errorf("can't remove '.' or '..'")
			code = 1
			continue
		}
		if !c.remove(name, o.has('r') || o.has('R'), force) {
			code = 1
		}
	}
	return code
}

// remove removes a file or, if recursive, a tree, reporting what can't be.
func (c *call) remove(name string, recursive, force bool) bool {
	c.spend(4096)
	v := c.view()
	fi, err := v.Lstat(name)
	if err != nil {
		if force && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) {
			return true
		}
		c.errorf("can't remove '%s': %s", name, strerror(err))
		return false
	}
	if fi.IsDir() {
		if !recursive {
			c.errorf("'%s' is a directory", name)
			return false
		}
		list, err := v.ReadDir(name)
		if err != nil {
			c.errorf("can't open '%s': %s", name, strerror(err))
			return false
		}
		ok := true
		for _, e := range list {
			ok = c.remove(join(name, e.Name()), true, force) && ok
		}
		if !ok {
			return false
		}
	}
	if err := v.Remove(name); err != nil {
		c.errorf("can't remove '%s': %s", name, strerror(err))
		return false
	}
	return true
}

func runUnlink(c *call) int {
	if len(c.args) != 1 {
		c.usage()
	}
	if err := c.view().Remove(c.args[0]); err != nil {
		c.die("can't remove file '%s': %s", c.args[0], strerror(err))
	}
	return 0
}

func runLink(c *call) int {
	if len(c.args) != 2 {
		c.usage()
	}
	if err := c.view().Link(c.args[0], c.args[1]); err != nil {
		c.die("can't create hardlink '%s' to '%s': %s", c.args[1], c.args[0], strerror(err))
	}
	return 0
}

func runLn(c *call) int {
	o := c.getopt("sfnbS:vT", "symbolic=s", "force=f", "no-dereference=n", "no-target-directory=T", "verbose=v")
	if len(o.args) == 0 || o.has('T') && len(o.args) > 2 {
		c.usage()
	}
	targets := o.args
	dest := ""
	if len(targets) == 1 {
		dest = base(strings.TrimRight(targets[0], "/"))
	} else {
		dest = targets[len(targets)-1]
		targets = targets[:len(targets)-1]
	}
	v := c.view()
	intoDir := false
	if !o.has('T') {
		fi, err := v.Stat(dest)
		intoDir = err == nil && fi.IsDir()
		if lfi, err := v.Lstat(dest); err == nil && o.has('n') && lfi.Mode()&fs.ModeSymlink != 0 {
			intoDir = false
		}
	}
	if len(targets) > 1 && !intoDir {
		c.usage()
	}
	code := 0
	for _, t := range targets {
		name := dest
		if intoDir {
			name = join(dest, base(strings.TrimRight(t, "/")))
		}
		if !o.has('s') {
			if _, err := v.Stat(t); err != nil {
				c.errorf("%s: %s", t, strerror(err))
				code = 1
				continue
			}
		}
		if o.has('f') {
			_ = v.Remove(name)
		}
		link := v.Link
		if o.has('s') {
			link = v.Symlink
		}
		if err := link(t, name); err != nil {
			c.errorf("%s: %s", name, strerror(err))
			code = 1
		} else if o.has('v') {
			c.printf("'%s' -> '%s'\n", name, t)
		}
	}
	return code
}

func runReadlink(c *call) int {
	o := c.getopt("fnvsq", "canonicalize=f", "no-newline=n")
	if len(o.args) != 1 {
		c.usage()
	}
	var to string
	var err error
	if o.has('f') {
		to, err = c.canonical(o.args[0], false)
	} else {
		to, err = c.view().Readlink(o.args[0])
	}
	if err != nil {
		if o.has('v') {
			c.errorf("%s: %s", o.args[0], strerror(err))
		}
		return 1
	}
	c.print(to)
	if !o.has('n') {
		c.print("\n")
	}
	return 0
}

func runRealpath(c *call) int {
	if len(c.args) == 0 {
		c.usage()
	}
	code := 0
	for _, name := range c.getopt("").args {
		to, err := c.canonical(name, true)
		if err != nil {
			c.errorf("%s: %s", name, strerror(err))
			code = 1
			continue
		}
		c.print(to, "\n")
	}
	return code
}

// canonical resolves all links of a path; its last part need not exist.
func (c *call) canonical(name string, mustExist bool) (string, error) {
	v := c.view()
	for hops := 0; hops < 40; hops++ {
		to, err := v.EvalSymlinks(name)
		if err == nil || mustExist || !errors.Is(err, fs.ErrNotExist) {
			return to, err
		}
		if link, lerr := v.Readlink(name); lerr == nil {
			if !strings.HasPrefix(link, "/") {
				link = path.Join(path.Dir(c.absolute(name)), link)
			}
			name = link
			continue
		}
		abs := strings.TrimRight(c.absolute(name), "/")
		dir, err := v.EvalSymlinks(path.Dir(abs))
		if err != nil {
			return "", err
		}
		return join(dir, path.Base(abs)), nil
	}
	return "", syscall.ELOOP
}

func (c *call) absolute(name string) string {
	if strings.HasPrefix(name, "/") {
		return path.Clean(name)
	}
	return path.Join(c.p.Dir, name)
}

func runTouch(c *call) int {
	o := c.getopt("chamd:t:r:f", "no-create=c", "date=d:", "reference=r:", "time=t:")
	if len(o.args) == 0 {
		c.usage()
	}
	at := c.p.Now()
	v := c.view()
	switch o.last("dtr") {
	case 'd', 't':
		s := o.str(o.last("dtr"))
		t, ok := parseDate(s, at)
		if !ok {
			c.die("invalid date '%s'", s)
		}
		at = t
	case 'r':
		fi, err := v.Stat(o.str('r'))
		if err != nil {
			c.die("can't stat '%s': %s", o.str('r'), strerror(err))
		}
		at = fi.ModTime()
	}
	code := 0
	for _, name := range o.args {
		err := v.Chtimes(name, at)
		if errors.Is(err, fs.ErrNotExist) {
			if o.has('c') {
				continue
			}
			var f io.Closer
			if f, err = c.create(name, true); err == nil {
				f.Close()
				if o.last("dtr") != 0 {
					err = v.Chtimes(name, at)
				}
			}
		}
		if err != nil {
			c.errorf("%s: %s", name, strerror(err))
			code = 1
		}
	}
	return code
}

func runTruncate(c *call) int {
	o := c.getopt("cs:", "size=s:", "no-create=c")
	if len(o.args) == 0 || !o.has('s') {
		c.usage()
	}
	size := c.sized(o.str('s'), sizeSuffixes())
	code := 0
	for _, name := range o.args {
		if _, err := c.view().Stat(name); err != nil {
			if o.has('c') {
				continue
			}
			f, err := c.create(name, true)
			if err != nil {
				c.errorf("%s: open: %s", name, strerror(err))
				code = 1
				continue
			}
			f.Close()
		}
		if err := c.view().Truncate(name, size); err != nil {
			c.errorf("%s: truncate: %s", name, strerror(err))
			code = 1
		}
	}
	return code
}

func runMktemp(c *call) int {
	o := c.getopt("dqtp:u", "directory=d", "quiet=q")
	template := "tmp.XXXXXX"
	dir := ""
	if len(o.args) > 1 {
		c.usage()
	}
	if len(o.args) == 1 {
		template = o.args[0]
	}
	if len(o.args) == 0 || o.has('t') || o.has('p') {
		dir = "/tmp"
		if d := c.env("TMPDIR"); d != "" {
			dir = d
		}
		if o.has('p') {
			dir = o.str('p')
		}
		template = join(dir, template)
	}
	fail := func(err error) int {
		if !o.has('q') {
			c.errorf("(null): %s", strerror(err))
		}
		return 1
	}
	stem, ok := strings.CutSuffix(template, "XXXXXX")
	if !ok {
		return fail(syscall.EINVAL)
	}
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	for n := uint64(0); n < 1000; n++ {
		draw := c.p.Loop().Uint64("mktemp", template+" "+strconv.Itoa(c.p.PID()), n+uint64(c.p.Now().UnixNano()))
		name := stem
		for i := 0; i < 6; i++ {
			name += string(rune(letters[draw%62]))
			draw /= 62
		}
		if _, err := c.view().Lstat(name); err == nil {
			continue
		}
		var err error
		switch {
		case o.has('u'):
		case o.has('d'):
			err = c.view().Mkdir(name, 0o700)
		default:
			err = c.view().WriteFile(name, nil, 0o600)
		}
		if err != nil {
			return fail(err)
		}
		c.print(name, "\n")
		return 0
	}
	return fail(syscall.EEXIST)
}
