package applets

import (
	"io"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Gzip is gzip, gunzip and zcat. The levels 1 to 9 are taken, and all compress
// alike, so sizes differ from the real one's by a little. Files get and lose
// .gz; .tgz becomes .tar; another suffix is reported and passed over. The
// modification time is kept, the owner is not.
//
// -n, -N, -q and -v are read and do nothing. bzip2, xz and lzma are not built,
// so their names are not found.
func Gzip() applet.Applet {
	return applet.New(runGzip, "gunzip", "[-cfkt] [FILE]...", "gzip", "[-cfkdt123456789] [FILE]...", "zcat", "[FILE]...")
}

// runGzip is gzip, gunzip and zcat.
func runGzip(c *applet.Call) int {
	o := c.Getopt("cfkdtqnvS:123456789", "stdout=c", "to-stdout=c", "force=f", "keep=k", "decompress=d", "uncompress=d", "test=t")
	// What the name says is the default; gzip -d is gunzip.
	unpack := c.Name != "gzip" || o.Has('d') || o.Has('t')
	// These write to the standard output and leave files alone.
	if len(o.Args) == 0 || c.Name == "zcat" || o.Has('c') || o.Has('t') {
		return c.EachInput(o.Args, applet.PlainOpen, func(name string, r io.Reader) error {
			data, err := c.Gzipped(r, unpack)
			// -t is after the error alone.
			if !o.Has('t') {
				_, _ = c.Out.Write(data)
			}
			if err != nil && name == "-" {
				c.Die("%s", err)
			}
			return err
		})
	}
	code := 0
	for _, name := range o.Args {
		to := name + ".gz"
		// A missing file is reported as such, whatever its suffix.
		if _, err := c.View().Stat(name); err != nil {
			c.Errorf(applet.PlainOpen, name, applet.Strerror(err))
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
				c.Errorf("%s: unknown suffix - ignored", name)
				code = 1
				continue
			}
		}
		if !gzipFile(c, name, to, unpack, o) {
			code = 1
		}
	}
	return code
}

// gzipFile packs or unpacks one file, and removes it if all went well and -k
// does not keep it. A file in the way is an error unless -f.
func gzipFile(c *applet.Call, name, to string, unpack bool, o *applet.Options) bool {
	v := c.View()
	fi, err := v.Stat(name)
	var r io.ReadCloser
	if err == nil {
		r, err = c.Open(name)
	}
	if err != nil {
		c.Errorf("%s: %s", name, applet.Strerror(err))
		return false
	}
	defer r.Close()
	data, err := c.Gzipped(r, unpack)
	if err != nil {
		c.Errorf("%s: %s", name, applet.Strerror(err))
		return false
	}
	if _, err := v.Lstat(to); err == nil && !o.Has('f') {
		c.Errorf("can't open '%s': File exists", to)
		return false
	}
	if err := v.WriteFile(to, data, fi.Mode().Perm()); err != nil {
		c.Errorf(applet.CantOpen, to, applet.Strerror(err))
		return false
	}
	// The packed file is as old as what is in it.
	_ = v.Chtimes(to, fi.ModTime())
	// Only now that the other file is complete.
	if !o.Has('k') {
		_ = v.Remove(name)
	}
	return true
}
