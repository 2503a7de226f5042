package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Cmp is cmp. Both files are read whole before anything is said, which only
// shows in time. Its own errors are status 2, a difference is 1. -n is read and
// does nothing. The message of a short file goes to stderr and names the file,
// without GNU's byte count.
func Cmp() applet.Applet { return applet.New(runCmp, "cmp", "[-ls] FILE1 [FILE2]") }

func runCmp(c *applet.Call) int {
	// Trouble is status 2, wrong usage included: 1 is taken by a difference.
	o := c.GetoptStatus(2, "sln:")
	if len(o.Args) == 0 || len(o.Args) > 2 {
		c.Usage()
	}
	// Without a second file, stdin.
	names := append(append([]string(nil), o.Args...), "-")[:2]
	var data [2][]byte
	for i, name := range names {
		b, err := c.ReadAll(name)
		if err != nil {
			// -s silences errors as well; the status is what remains of them.
			if !o.Has('s') {
				c.Errorf("%s: %s", name, applet.Strerror(err))
			}
			return 2
		}
		data[i] = b
	}
	line, code := 1, 0
	for i := 0; ; i++ {
		if i >= len(data[0]) || i >= len(data[1]) {
			if len(data[0]) != len(data[1]) {
				// The message names the file that ended first.
				short := 0
				if len(data[1]) < len(data[0]) {
					short = 1
				}
				if !o.Has('s') {
					c.Errorf("EOF on %s", names[short])
				}
				return 1
			}
			return code
		}
		if data[0][i] != data[1][i] {
			// With -l the comparison goes on, and lists every byte that
			// differs.
			code = 1
			switch {
			case o.Has('s'):
				return 1
			// Offsets count from 1 and bytes are octal, as POSIX wants both.
			case o.Has('l'):
				c.Printf("%d %3o %3o\n", i+1, data[0][i], data[1][i])
			default:
				c.Printf("%s %s differ: char %d, line %d\n", names[0], names[1], i+1, line)
				return 1
			}
		}
		// Counted after the comparison: a newline that differs still belongs to the line
		// it ends.
		if data[0][i] == '\n' {
			line++
		}
	}
}
