package applets

import (
	"hash/crc32"
	"io"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Cksum is cksum, and crc32 by that name. They share their reading, not their
// sums: POSIX's CRC goes from the highest bit and ends with the length; crc32
// is zip's, in hexadecimal. stdin is named in neither.
func Cksum() applet.Applet { return applet.New(runCksum, "cksum", "FILE...", "crc32", "[FILE]...") }

// runCksum prints the CRC of POSIX or, as crc32, that of zip.
func runCksum(c *applet.Call) int {
	return c.EachInput(c.Getopt("").Args, applet.PlainOpen, func(name string, r io.Reader) error {
		data, err := c.Slurp(r)
		if err != nil {
			return err
		}
		if c.Name == "crc32" {
			c.Printf("%08x", crc32.ChecksumIEEE(data))
			if name != "-" {
				c.Print(" ", name)
			}
			c.Print("\n")
			return nil
		}
		crc := uint32(0)
		// POSIX's polynomial, without the reversed bits of crc32, so no table of
		// package crc32 fits.
		step := func(b byte) {
			crc ^= uint32(b) << 24
			for range 8 {
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
		// The length follows as if it were data, lowest byte first and without leading
		// zeros.
		for n := len(data); n > 0; n >>= 8 {
			step(byte(n))
		}
		// POSIX complements the register at the end.
		c.Printf("%d %d", ^crc, len(data))
		if name != "-" {
			c.Print(" ", name)
		}
		c.Print("\n")
		return nil
	})
}
