package expect

import celast "github.com/google/cel-go/common/ast"

// Name is a name that an expression states, and where. The place is for errors of loading.
type Name struct {
	Text string
	// Line and Column are 1-based positions within the expression.
	Line, Column int
}

// Machines are the names of nodes whose machines the expression asks: that there
// is none is a mistake, while a node of the API may well be absent.
func (x *Expectation) Machines() []Name {
	var out []Name
	celast.PostOrderVisit(x.checked.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind {
			return
		}
		call := e.AsCall()
		if f := call.FunctionName(); f != "usage" && f != "cgroups" && f != "podResources" || len(call.Args()) != 1 || call.Args()[0].Kind() != celast.LiteralKind {
			return
		}
		if name, ok := call.Args()[0].AsLiteral().Value().(string); ok {
			at := x.checked.SourceInfo().GetStartLocation(call.Args()[0].ID())
			out = append(out, Name{name, at.Line(), at.Column() + 1})
		}
	}))
	return out
}
