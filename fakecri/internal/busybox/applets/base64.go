package applets

import (
	"encoding/base64"
	"io"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Base64 is base64. Only the first operand is read, as the real one does; white
// space in what is decoded is skipped, and what is decoded before an error is
// printed before the message. Lines are 76 characters; -w 0 leaves the last one
// without a newline.
func Base64() applet.Applet { return applet.New(runBase64, "base64", "[-d] [-w COL] [FILE]") }

func runBase64(c *applet.Call) int {
	o := c.Getopt("dw:", "decode=d", "wrap=w:")
	width := 76
	if o.Has('w') {
		width = int(c.Number(o.Str('w')))
	}
	return c.EachInput(o.Args[:min(1, len(o.Args))], applet.PlainOpen, func(_ string, r io.Reader) error {
		data, err := c.Slurp(r)
		if err != nil {
			return err
		}
		if o.Has('d') {
			// Go's decoder skips line ends by itself, but neither spaces nor tabs.
			text := strings.Map(func(r rune) rune {
				if r == '\n' || r == ' ' || r == '\t' || r == '\r' {
					return -1
				}
				return r
			}, string(data))
			out, err := base64.StdEncoding.DecodeString(text)
			// What precedes the damage is written first, as a decoder that streams has
			// done by then.
			_, _ = c.Out.Write(out)
			if err != nil {
				c.Die("truncated base64 input")
			}
			return nil
		}
		text := base64.StdEncoding.EncodeToString(data)
		// GNU's meaning of 0: a single line of any length.
		if width == 0 {
			c.Print(text)
			return nil
		}
		// The last line is shorter, and ends with a newline all the same.
		for len(text) > width {
			c.Print(text[:width], "\n")
			text = text[width:]
		}
		if text != "" {
			c.Print(text, "\n")
		}
		return nil
	})
}
