package applets

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"io"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Digest is md5sum, sha1sum, sha256sum and sha512sum, by name. -b and -t change
// nothing, as the two are the same on Linux; -w is read and does nothing. A
// line of -c that is no sum is passed over, without GNU's warning.
func Digest() applet.Applet {
	return applet.New(runDigest,
		"md5sum", "[-c [-s]] [FILE]...",
		"sha1sum", "[-c [-s]] [FILE]...",
		"sha256sum", "[-c [-s]] [FILE]...",
		"sha512sum", "[-c [-s]] [FILE]...")
}

func runDigest(c *applet.Call) int {
	var fresh func() hash.Hash
	switch c.Name {
	case "md5sum":
		fresh = md5.New
	case "sha1sum":
		fresh = sha1.New
	case "sha256sum":
		fresh = sha256.New
	// Digest lists no other name.
	default:
		fresh = sha512.New
	}
	o := c.Getopt("scwbt", "check=c", "status=s", "binary=b", "text=t")
	if o.Has('c') {
		return checkDigests(c, o, fresh)
	}
	return c.EachInput(o.Args, applet.CantOpen, func(name string, r io.Reader) error {
		h := fresh()
		if _, err := io.Copy(h, r); err != nil {
			return err
		}
		c.Print(hex.EncodeToString(h.Sum(nil)), "  ", name, "\n")
		return nil
	})
}

// checkDigests is -c: each line names a file and what its sum should be. The
// second character between the two is a space or an asterisk, and says nothing.
func checkDigests(c *applet.Call, o *applet.Options, fresh func() hash.Hash) int {
	bad, total := 0, 0
	code := c.EachLine(o.Args, applet.CantOpen, func(line string, _ bool) {
		sum, name, ok := strings.Cut(line, " ")
		if !ok || len(name) < 2 {
			return
		}
		// One separator went with the cut; this is the other.
		name = name[1:]
		// Files that can't be read are counted, too, as they are among the bad.
		total++
		h := fresh()
		r, err := c.Open(name)
		if err == nil {
			_, err = io.Copy(h, r)
			r.Close()
		}
		if err != nil {
			c.Errorf(applet.CantOpen, name, applet.Strerror(err))
		}
		// A file that can't be read has failed, too.
		if err != nil || hex.EncodeToString(h.Sum(nil)) != strings.ToLower(sum) {
			bad++
			if !o.Has('s') {
				c.Print(name, ": FAILED\n")
			}
		} else if !o.Has('s') {
			c.Print(name, ": OK\n")
		}
	})
	if bad > 0 {
		if !o.Has('s') {
			c.Errorf("WARNING: %d of %d computed checksums did NOT match", bad, total)
		}
		return 1
	}
	return code
}
