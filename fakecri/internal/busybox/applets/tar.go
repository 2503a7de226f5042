package applets

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Tar is tar: GNU's format, gzip with -z, which reading finds out by itself.
// Other compressions (-j, -J, -a) and -X, -T, -o, -k, -p and -m are read and do
// nothing: files are replaced, times and modes always kept. Members are never
// extracted outside of the directory: leading slashes and .. go.
//
// The archive is held in memory, up to a limit, and is not charged to the
// cgroup.
func Tar() applet.Applet {
	return applet.New(runTar, "tar", "c|x|t [-zvOhkpm] [-f TARFILE] [-C DIR] [FILE]...")
}

// tarRun is one run of tar. A failure with one member is told and the rest goes on; the status is
// 1 in the end.
type tarRun struct {
	c    *applet.Call
	o    *applet.Options
	code int
}

func runTar(c *applet.Call) int {
	// The first word may lack its dash.
	if len(c.Args) > 0 && c.Args[0] != "" && c.Args[0][0] != '-' {
		c.Args = append(tarOldStyle(c.Args[0], c.Args[1:]), c.Args[1+strings.Count(c.Args[0], "f")+strings.Count(c.Args[0], "C"):]...)
	}
	o := c.Getopt("cxtzvOhkpmjJaf:C:oX:T:", "create=c", "extract=x", "list=t", "gzip=z", "verbose=v", "to-stdout=O", "file=f:", "directory=C:", "dereference=h", "keep-old=k")
	t := &tarRun{c: c, o: o}
	// One of the three is needed; of several the last one counts.
	if o.Last("cxt") == 0 {
		c.Usage()
	}
	name := "-"
	if o.Has('f') {
		name = o.Str('f')
	}
	if o.Last("cxt") == 'c' {
		t.create(name)
	} else {
		t.read(name)
	}
	return t.code
}

// tarOldStyle spreads a bundle such as xzf over options with their values. Values follow in the
// order of their letters, as in "tar cfC out.tar dir".
func tarOldStyle(bundle string, rest []string) []string {
	var out []string
	for _, f := range bundle {
		out = append(out, "-"+string(f))
		if (f == 'f' || f == 'C') && len(rest) > 0 {
			out = append(out, rest[0])
			rest = rest[1:]
		}
	}
	return out
}

// dir is a name below -C. Absolute names are not below it.
func (t *tarRun) dir(name string) string {
	if t.o.Has('C') && !strings.HasPrefix(name, "/") {
		return applet.Join(t.o.Str('C'), name)
	}
	return name
}

// create writes an archive. A file that can't be read does not keep the others
// out, but the status tells.
func (t *tarRun) create(name string) {
	c := t.c
	if len(t.o.Args) == 0 {
		c.Die("empty archive")
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, a := range t.o.Args {
		t.add(w, a)
	}
	_ = w.Close()
	data := b.Bytes()
	if t.o.Has('z') {
		data, _ = c.Gzipped(&b, false)
	}
	if name == "-" {
		_, _ = c.Out.Write(data)
	} else if err := c.View().WriteFile(name, data, 0o666); err != nil {
		c.Die(applet.CantOpen, name, applet.Strerror(err))
	}
	if t.code != 0 {
		c.Errorf("error exit delayed from previous errors")
	}
}

// add adds a file, and what is below a directory. Devices, pipes and sockets
// are left out. Members of a directory come in the order of ReadDir.
func (t *tarRun) add(w *tar.Writer, name string) {
	c, v := t.c, t.c.View()
	stat := v.Lstat
	if t.o.Has('h') {
		stat = v.Stat
	}
	fi, err := stat(t.dir(name))
	if err != nil {
		c.Errorf("%s: %s", name, applet.Strerror(err))
		t.code = 1
		return
	}
	sys := applet.SysOf(fi)
	h := &tar.Header{Name: strings.TrimLeft(name, "/"), Mode: int64(applet.OctalMode(fi.Mode())), Uid: sys.UID, Gid: sys.GID, ModTime: fi.ModTime(), Format: tar.FormatGNU}
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
	if t.o.Has('v') {
		c.Stderr(h.Name + "\n")
	}
	// The root itself is not a member, only what is in it.
	if h.Name != "/" {
		_ = w.WriteHeader(h)
	}
	if h.Typeflag == tar.TypeReg {
		if r, err := c.Open(t.dir(name)); err == nil {
			// The header has promised a size: a file that has grown since is
			// cut off there.
			_, _ = io.Copy(w, io.LimitReader(r, fi.Size()))
			r.Close()
		}
	}
	if fi.IsDir() {
		list, _ := v.ReadDir(t.dir(name))
		for _, e := range list {
			t.add(w, applet.Join(strings.TrimRight(name, "/"), e.Name()))
		}
	}
}

// wanted reports whether a member is one of the operands, or below one. An operand that no member
// matches is passed over without a word.
func (t *tarRun) wanted(name string) bool {
	if len(t.o.Args) == 0 {
		return true
	}
	for _, a := range t.o.Args {
		a = strings.TrimRight(a, "/")
		if n := strings.TrimRight(name, "/"); n == a || strings.HasPrefix(n, a+"/") {
			return true
		}
	}
	return false
}

// read lists or extracts an archive. Members are listed as they are read, so a broken archive
// shows what comes before the break.
func (t *tarRun) read(name string) {
	c := t.c
	src, err := c.Open(name)
	if err != nil {
		c.Die(applet.CantOpen, name, applet.Strerror(err))
	}
	defer src.Close()
	// The limit bounds the simulation's own memory, to which no cgroup applies.
	data, err := io.ReadAll(io.LimitReader(src, applet.MaxUnpacked))
	if err != nil {
		c.Die("read error: %s", applet.Strerror(err))
	}
	// gzip's magic number, with or without -z.
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		if data, err = c.Gzipped(bytes.NewReader(data), true); err != nil {
			c.Die("invalid gzip magic")
		}
	}
	r := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			c.Die("invalid tar magic")
		}
		if !t.wanted(h.Name) {
			continue
		}
		if t.o.Has('t') || t.o.Has('v') {
			if t.o.Has('v') && t.o.Has('t') {
				c.Printf("%s %d/%d %9d %s ", applet.ModeString(h.FileInfo().Mode()), h.Uid, h.Gid, h.Size, h.ModTime.UTC().Format("2006-01-02 15:04:05"))
			}
			c.Print(h.Name, "\n")
		}
		if t.o.Has('x') {
			t.extract(h, r)
		}
	}
}

// extract makes a member; h says what it is. Owners are kept if root extracts,
// as -p is the default for root. Hard links name a member that came before.
func (t *tarRun) extract(h *tar.Header, r io.Reader) {
	c, v := t.c, t.c.View()
	// With -O contents go to stdout, and nothing is made.
	if t.o.Has('O') {
		_, _ = io.Copy(c.Out, r)
		return
	}
	// Cleaned from the root, a name can't lead out of the directory.
	name := path.Clean("/" + h.Name)[1:]
	if name == "" {
		return
	}
	name = t.dir(name)
	// Archives need not list the directories their members are in.
	_ = v.MkdirAll(path.Dir(name), 0o777)
	var err error
	switch h.Typeflag {
	case tar.TypeDir:
		if err = v.Mkdir(name, 0o777); err != nil {
			// A directory that exists is no error, and neither is a link to
			// one.
			if fi, serr := v.Stat(name); serr == nil && fi.IsDir() {
				err = nil
			}
		}
	case tar.TypeSymlink:
		// What is in the way goes, so that a link there is not written through.
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
			f = c.Stream(out)
			_, err = io.Copy(f, r)
			f.Close()
		}
	}
	if err != nil {
		c.Errorf("can't open '%s': %s", name, applet.Strerror(err))
		t.code = 1
		return
	}
	// A link has no mode, and the times of its target are not its.
	if h.Typeflag != tar.TypeSymlink {
		_ = v.Chmod(name, applet.FileMode(uint32(h.Mode)))
		_ = v.Chtimes(name, h.ModTime)
	}
	if c.P.Cred.UID == 0 {
		_ = v.Lchown(name, h.Uid, h.Gid)
	}
}
