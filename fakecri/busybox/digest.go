package busybox

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
)

func runDigest(c *call) int {
	var fresh func() hash.Hash
	switch c.name {
	case "md5sum":
		fresh = md5.New
	case "sha1sum":
		fresh = sha1.New
	case "sha256sum":
		fresh = sha256.New
	default:
		fresh = sha512.New
	}
	o := c.getopt("scwbt", "check=c", "status=s", "binary=b", "text=t")
	if o.has('c') {
		return c.checkDigests(o, fresh)
	}
	return c.eachInput(o.args, cantOpen, func(name string, r io.Reader) error {
		h := fresh()
		if _, err := io.Copy(h, r); err != nil {
			return err
		}
		c.print(hex.EncodeToString(h.Sum(nil)), "  ", name, "\n")
		return nil
	})
}

func (c *call) checkDigests(o *options, fresh func() hash.Hash) int {
	bad, total := 0, 0
	code := c.eachLine(o.args, cantOpen, func(line string, _ bool) {
		sum, name, ok := strings.Cut(line, " ")
		if !ok || len(name) < 2 {
			return
		}
		name = name[1:]
		total++
		h := fresh()
		r, err := c.open(name)
		if err == nil {
			_, err = io.Copy(h, r)
			r.Close()
		}
		if err != nil {
			c.errorf(cantOpen, name, strerror(err))
		}
		if err != nil || hex.EncodeToString(h.Sum(nil)) != strings.ToLower(sum) {
			bad++
			if !o.has('s') {
				c.print(name, ": FAILED\n")
			}
		} else if !o.has('s') {
			c.print(name, ": OK\n")
		}
	})
	if bad > 0 {
		if !o.has('s') {
			c.errorf("WARNING: %d of %d computed checksums did NOT match", bad, total)
		}
		return 1
	}
	return code
}

// runCksum prints the CRC of POSIX or, as crc32, that of zip.
func runCksum(c *call) int {
	return c.eachInput(c.getopt("").args, plainOpen, func(name string, r io.Reader) error {
		data, err := c.slurp(r)
		if err != nil {
			return err
		}
		if c.name == "crc32" {
			c.printf("%08x", crc32.ChecksumIEEE(data))
			if name != "-" {
				c.print(" ", name)
			}
			c.print("\n")
			return nil
		}
		crc := uint32(0)
		step := func(b byte) {
			crc ^= uint32(b) << 24
			for i := 0; i < 8; i++ {
				if crc&(1<<31) != 0 {
					crc = crc<<1 ^ 0x04c11db7
				} else {
					crc <<= 1
				}
			}
		}
		for _, b := range data {
			step(b)
		}
		for n := len(data); n > 0; n >>= 8 {
			step(byte(n))
		}
		c.printf("%d %d", ^crc, len(data))
		if name != "-" {
			c.print(" ", name)
		}
		c.print("\n")
		return nil
	})
}

func runBase64(c *call) int {
	o := c.getopt("dw:", "decode=d", "wrap=w:")
	width := 76
	if o.has('w') {
		width = int(c.number(o.str('w')))
	}
	return c.eachInput(o.args[:min(1, len(o.args))], plainOpen, func(_ string, r io.Reader) error {
		data, err := c.slurp(r)
		if err != nil {
			return err
		}
		if o.has('d') {
			text := strings.Map(func(r rune) rune {
				if r == '\n' || r == ' ' || r == '\t' || r == '\r' {
					return -1
				}
				return r
			}, string(data))
			out, err := base64.StdEncoding.DecodeString(text)
			_, _ = c.out.Write(out)
			if err != nil {
				c.die("truncated base64 input")
			}
			return nil
		}
		text := base64.StdEncoding.EncodeToString(data)
		if width == 0 {
			c.print(text)
			return nil
		}
		for len(text) > width {
			c.print(text[:width], "\n")
			text = text[width:]
		}
		if text != "" {
			c.print(text, "\n")
		}
		return nil
	})
}

func i64(n int64) string { return strconv.FormatInt(n, 10) }
