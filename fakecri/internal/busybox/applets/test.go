package applets

import (
	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/internal/condition"
)

// Test is test, [ and [[, as programs; the shell has builtins of the same
// package condition. [[ as a program has had its words split and globbed by the
// shell that starts it.
func Test() applet.Applet {
	return applet.New(runTest, "[", "EXPRESSION ]", "[[", "EXPRESSION ]]", "test", "EXPRESSION")
}

// runTest returns 2 for a malformed expression, as POSIX wants any status above
// 1, so that scripts can tell it from false.
func runTest(c *applet.Call) int {
	operands, problem := condition.Operands(c.Name, c.Args)
	t := condition.Test{Process: c.P, Problem: problem}
	ok := problem == "" && t.Eval(operands)
	switch {
	case t.Problem != "":
		c.Errorf("%s", t.Problem)
		return 2
	case !ok:
		return 1
	}
	return 0
}
