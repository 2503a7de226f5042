package busybox

import "github.com/drydock-sim/drydock/fakecri/kernel"

// runStty tells of the terminal that is the standard input. Its modes can't be
// changed, since there is one only.
func runStty(c *call) int {
	width, height, ok := kernel.WindowSize(c.p.FD(0))
	switch {
	case !ok:
		c.errorf("standard input: Not a tty")
		return 1
	case len(c.args) == 0:
		c.print("speed 38400 baud; line = 0;\n")
		return 0
	case len(c.args) == 1 && c.args[0] == "size":
		c.printf("%d %d\n", height, width)
		return 0
	}
	c.errorf("invalid argument '%s'", c.args[0])
	return 1
}
