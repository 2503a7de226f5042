package busybox

import (
	"github.com/drydock-sim/drydock/fakecri/internal/condition"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

func isTTY(f kernel.File) bool { return f != nil && kernel.IsTTY(f) }

func runTest(c *call) int {
	operands, problem := condition.Operands(c.name, c.args)
	t := condition.Test{Process: c.p, Problem: problem}
	ok := problem == "" && t.Eval(operands)
	switch {
	case t.Problem != "":
		c.errorf("%s", t.Problem)
		return 2
	case !ok:
		return 1
	}
	return 0
}
