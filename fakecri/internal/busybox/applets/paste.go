package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Paste is paste. The list of -d is gone through by characters, with \0 for
// none, and starts anew in each line. Several - take turns with the lines of
// stdin. A file that has ended counts as empty lines until all have.
func Paste() applet.Applet { return applet.New(runPaste, "paste", "[-s] [-d LIST] [FILE]...") }

// runPaste opens every file before it prints: one that is missing ends it
// without output.
func runPaste(c *applet.Call) int {
	o := c.Getopt("d:s", "delimiters=d:", "serial=s")
	delims := "\t"
	if o.Has('d') {
		delims = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`, `\0`, "\x00").Replace(o.Str('d'))
	}
	delim := func(i int) string {
		// An empty list and \0 both mean no delimiter at all, not a zero byte.
		if delims == "" || delims[i%len(delims)] == 0 {
			return ""
		}
		return delims[i%len(delims) : i%len(delims)+1]
	}
	files := o.Args
	if len(files) == 0 {
		files = []string{"-"}
	}
	var ins []*applet.Lines
	for _, name := range files {
		// stdin is one reader, however often it is named.
		if name == "-" && len(ins) > 0 {
			ins = append(ins, ins[len(ins)-1])
			continue
		}
		r, err := c.Open(name)
		if err != nil {
			c.Die(applet.PlainOpen, name, applet.Strerror(err))
		}
		defer r.Close()
		ins = append(ins, c.Lines(r, '\n'))
	}
	// With -s each file becomes one line, and the list of delimiters starts
	// anew in each.
	if o.Has('s') {
		for _, l := range ins {
			for i := 0; ; i++ {
				text, _, ok := l.Next()
				if !ok {
					break
				}
				if i > 0 {
					c.Print(delim(i - 1))
				}
				c.Print(text)
			}
			c.Print("\n")
		}
		return 0
	}
	for {
		// A line is made if any of the inputs still has one.
		parts := make([]string, len(ins))
		any := false
		for i, l := range ins {
			text, _, ok := l.Next()
			parts[i] = text
			any = any || ok
		}
		if !any {
			return 0
		}
		for i, p := range parts {
			if i > 0 {
				c.Print(delim(i - 1))
			}
			c.Print(p)
		}
		c.Print("\n")
	}
}
