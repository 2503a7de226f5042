package condition

import (
	"strings"
	"testing"
)

// The answers are those of busybox test and busybox sh: 2 is an error.
func TestEval(t *testing.T) {
	for _, tc := range []struct {
		operands string
		code     int
		problem  string
	}{
		{"", 1, ""},
		{"a", 0, ""},
		{"-n", 0, ""},
		{"! a", 1, ""},
		{"! ! a", 0, ""},
		{"-z -a", 1, ""},
		{"a = a", 0, ""},
		{"a != a", 1, ""},
		{"a -a b", 0, ""},
		{"a = a -a b = c", 1, ""},
		{"a = b -o ( c = c )", 0, ""},
		{"! a = b", 0, ""},
		{"( a = b )", 1, ""},
		{"( a", 2, "closing paren expected"},
		{"1 -eq 01", 0, ""},
		{"-1 -lt 0", 0, ""},
		{"1 -eq a", 2, "a: bad number"},
		{"1 -eq 99999999999999999999", 2, "99999999999999999999: out of range"},
		{"a b c", 2, "b: unknown operand"},
		{"abc =~ ^a.c$", 0, ""},
		{"abc =~ a(b", 2, "bad regex 'a(b': "},
	} {
		c := Test{}
		code := 1
		if c.Eval(strings.Fields(tc.operands)) {
			code = 0
		}
		if c.Problem != "" {
			code = 2
		}
		if code != tc.code || !strings.HasPrefix(c.Problem, tc.problem) {
			t.Errorf("test %s: %d %q, want %d %q", tc.operands, code, c.Problem, tc.code, tc.problem)
		}
	}
}

func TestOperands(t *testing.T) {
	for _, tc := range []struct {
		name, args string
		want       int
		problem    string
	}{
		{"test", "a ]", 2, ""},
		{"[", "a ]", 1, ""},
		{"[", "a", 0, "missing ]"},
		{"[", "", 0, "missing ]"},
		{"[[", "a ]", 0, "missing ]]"},
	} {
		got, problem := Operands(tc.name, strings.Fields(tc.args))
		if len(got) != tc.want || problem != tc.problem {
			t.Errorf("%s %s: %q %q", tc.name, tc.args, got, problem)
		}
	}
}

func FuzzEval(f *testing.F) {
	f.Add("! ( a = b -o -n c ) -a 1 -lt 2")
	f.Fuzz(func(t *testing.T, s string) {
		var operands []string
		for _, o := range strings.Fields(s) {
			// Files need a process.
			if len(o) == 2 && IsUnary(o) && o != "-n" && o != "-z" || o == "-nt" || o == "-ot" || o == "-ef" {
				continue
			}
			operands = append(operands, o)
		}
		c := Test{}
		if c.Eval(operands) && c.Problem != "" && len(operands) < 5 {
			t.Errorf("%q holds, with the problem %s", operands, c.Problem)
		}
	})
}
