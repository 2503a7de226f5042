package busybox

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// runGzip is gzip, gunzip and zcat.
func runGzip(c *call) int {
	o := c.getopt("cfkdtqnvS:123456789", "stdout=c", "to-stdout=c", "force=f", "keep=k", "decompress=d", "uncompress=d", "test=t")
	unpack := c.name != "gzip" || o.has('d') || o.has('t')
	if len(o.args) == 0 || c.name == "zcat" || o.has('c') || o.has('t') {
		return c.eachInput(o.args, plainOpen, func(name string, r io.Reader) error {
			data, err := c.gzipped(r, unpack)
			if !o.has('t') {
				_, _ = c.out.Write(data)
			}
			if err != nil && name == "-" {
				c.die("%s", err)
			}
			return err
		})
	}
	code := 0
	for _, name := range o.args {
		to := name + ".gz"
		if _, err := c.view().Stat(name); err != nil {
			c.errorf(plainOpen, name, strerror(err))
			code = 1
			continue
		}
		if unpack {
			switch {
			case strings.HasSuffix(name, ".tgz"):
				to = strings.TrimSuffix(name, "tgz") + "tar"
			case strings.HasSuffix(name, ".gz"):
				to = strings.TrimSuffix(name, ".gz")
			default:
				c.errorf("%s: unknown suffix - ignored", name)
				code = 1
				continue
			}
		}
		if !c.gzipFile(name, to, unpack, o) {
			code = 1
		}
	}
	return code
}

func (c *call) gzipFile(name, to string, unpack bool, o *options) bool {
	v := c.view()
	fi, err := v.Stat(name)
	var r io.ReadCloser
	if err == nil {
		r, err = c.open(name)
	}
	if err != nil {
		c.errorf("%s: %s", name, strerror(err))
		return false
	}
	defer r.Close()
	data, err := c.gzipped(r, unpack)
	if err != nil {
		c.errorf("%s: %s", name, strerror(err))
		return false
	}
	if _, err := v.Lstat(to); err == nil && !o.has('f') {
		c.errorf("can't open '%s': File exists", to)
		return false
	}
	if err := v.WriteFile(to, data, fi.Mode().Perm()); err != nil {
		c.errorf(cantOpen, to, strerror(err))
		return false
	}
	_ = v.Chtimes(to, fi.ModTime())
	if !o.has('k') {
		_ = v.Remove(name)
	}
	return true
}

// maxUnpacked bounds what an archive may unpack to in memory, in bytes.
const maxUnpacked = 256 << 20

// invalidMagic is what busybox says of what is no gzip file.
type invalidMagic struct{}

func (invalidMagic) Error() string { return "invalid magic" }

func (c *call) gzipped(r io.Reader, unpack bool) ([]byte, error) {
	if unpack {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, invalidMagic{}
		}
		return io.ReadAll(io.LimitReader(z, maxUnpacked))
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.Copy(z, r); err != nil {
		return nil, err
	}
	err := z.Close()
	c.spend(int64(b.Len()) * 16)
	return b.Bytes(), err
}

// tarRun is one run of tar.
type tarRun struct {
	c    *call
	o    *options
	code int
}

func runTar(c *call) int {
	// The first word may lack its dash.
	if len(c.args) > 0 && c.args[0] != "" && c.args[0][0] != '-' {
		c.args = append(tarOldStyle(c.args[0], c.args[1:]), c.args[1+strings.Count(c.args[0], "f")+strings.Count(c.args[0], "C"):]...)
	}
	o := c.getopt("cxtzvOhkpmjJaf:C:oX:T:", "create=c", "extract=x", "list=t", "gzip=z", "verbose=v", "to-stdout=O", "file=f:", "directory=C:", "dereference=h", "keep-old=k")
	t := &tarRun{c: c, o: o}
	if o.last("cxt") == 0 {
		c.usage()
	}
	name := "-"
	if o.has('f') {
		name = o.str('f')
	}
	if o.last("cxt") == 'c' {
		t.create(name)
	} else {
		t.read(name)
	}
	return t.code
}

// tarOldStyle spreads a bundle such as xzf over options with their values.
func tarOldStyle(bundle string, rest []string) []string {
	var out []string
	for _, f := range bundle {
		out = append(out, "-"+string(f))
		if f == 'f' || f == 'C' {
			if len(rest) > 0 {
				out = append(out, rest[0])
				rest = rest[1:]
			}
		}
	}
	return out
}

func (t *tarRun) dir(name string) string {
	if t.o.has('C') && !strings.HasPrefix(name, "/") {
		return join(t.o.str('C'), name)
	}
	return name
}

func (t *tarRun) create(name string) {
	c := t.c
	if len(t.o.args) == 0 {
		c.die("empty archive")
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, a := range t.o.args {
		t.add(w, a)
	}
	_ = w.Close()
	data := b.Bytes()
	if t.o.has('z') {
		data, _ = c.gzipped(&b, false)
	}
	if name == "-" {
		_, _ = c.out.Write(data)
	} else if err := c.view().WriteFile(name, data, 0o666); err != nil {
		c.die(cantOpen, name, strerror(err))
	}
	if t.code != 0 {
		c.errorf("error exit delayed from previous errors")
	}
}

func (t *tarRun) add(w *tar.Writer, name string) {
	c, v := t.c, t.c.view()
	stat := v.Lstat
	if t.o.has('h') {
		stat = v.Stat
	}
	fi, err := stat(t.dir(name))
	if err != nil {
		c.errorf("%s: %s", name, strerror(err))
		t.code = 1
		return
	}
	sys := sysOf(fi)
	h := &tar.Header{Name: strings.TrimLeft(name, "/"), Mode: int64(octalMode(fi.Mode())), Uid: sys.UID, Gid: sys.GID, ModTime: fi.ModTime(), Format: tar.FormatGNU}
	switch {
	case fi.IsDir():
		h.Typeflag = tar.TypeDir
		h.Name = strings.TrimRight(h.Name, "/") + "/"
	case fi.Mode()&fs.ModeSymlink != 0:
		h.Typeflag = tar.TypeSymlink
		h.Linkname, _ = v.Readlink(t.dir(name))
	case fi.Mode().IsRegular():
		h.Typeflag, h.Size = tar.TypeReg, fi.Size()
	default:
		return
	}
	if t.o.has('v') {
		c.stderr(h.Name + "\n")
	}
	if h.Name != "/" {
		_ = w.WriteHeader(h)
	}
	if h.Typeflag == tar.TypeReg {
		if r, err := c.open(t.dir(name)); err == nil {
			_, _ = io.Copy(w, io.LimitReader(r, fi.Size()))
			r.Close()
		}
	}
	if fi.IsDir() {
		list, _ := v.ReadDir(t.dir(name))
		for _, e := range list {
			t.add(w, join(strings.TrimRight(name, "/"), e.Name()))
		}
	}
}

func (t *tarRun) wanted(name string) bool {
	if len(t.o.args) == 0 {
		return true
	}
	for _, a := range t.o.args {
		a = strings.TrimRight(a, "/")
		if n := strings.TrimRight(name, "/"); n == a || strings.HasPrefix(n, a+"/") {
			return true
		}
	}
	return false
}

func (t *tarRun) read(name string) {
	c := t.c
	src, err := c.open(name)
	if err != nil {
		c.die(cantOpen, name, strerror(err))
	}
	defer src.Close()
	data, err := io.ReadAll(io.LimitReader(src, maxUnpacked))
	if err != nil {
		c.die("read error: %s", strerror(err))
	}
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		if data, err = c.gzipped(bytes.NewReader(data), true); err != nil {
			c.die("invalid gzip magic")
		}
	}
	r := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			c.die("invalid tar magic")
		}
		if !t.wanted(h.Name) {
			continue
		}
		if t.o.has('t') || t.o.has('v') {
			if t.o.has('v') && t.o.has('t') {
				c.printf("%s %d/%d %9d %s ", modeString(h.FileInfo().Mode()), h.Uid, h.Gid, h.Size, h.ModTime.UTC().Format("2006-01-02 15:04:05"))
			}
			c.print(h.Name, "\n")
		}
		if t.o.has('x') {
			t.extract(h, r)
		}
	}
}

func (t *tarRun) extract(h *tar.Header, r io.Reader) {
	c, v := t.c, t.c.view()
	if t.o.has('O') {
		_, _ = io.Copy(c.out, r)
		return
	}
	name := path.Clean("/" + h.Name)[1:]
	if name == "" {
		return
	}
	name = t.dir(name)
	_ = v.MkdirAll(path.Dir(name), 0o777)
	var err error
	switch h.Typeflag {
	case tar.TypeDir:
		if err = v.Mkdir(name, 0o777); err != nil {
			if fi, serr := v.Stat(name); serr == nil && fi.IsDir() {
				err = nil
			}
		}
	case tar.TypeSymlink:
		_ = v.Remove(name)
		err = v.Symlink(h.Linkname, name)
	case tar.TypeLink:
		_ = v.Remove(name)
		err = v.Link(t.dir(h.Linkname), name)
	default:
		_ = v.Remove(name)
		var f interface {
			io.Writer
			io.Closer
		}
		out, oerr := v.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err = oerr; err == nil {
			f = stream{c, out}
			_, err = io.Copy(f, r)
			f.Close()
		}
	}
	if err != nil {
		c.errorf("can't open '%s': %s", name, strerror(err))
		t.code = 1
		return
	}
	if h.Typeflag != tar.TypeSymlink {
		_ = v.Chmod(name, fileMode(uint32(h.Mode)))
		_ = v.Chtimes(name, h.ModTime)
	}
	if c.p.Cred.UID == 0 {
		_ = v.Lchown(name, h.Uid, h.Gid)
	}
}
