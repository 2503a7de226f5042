package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Env is env. The environment keeps the order that the process got it in; a
// variable that is set anew keeps its place, another goes to the end, as in the
// real one's environ. -S and --chdir are not built.
func Env() applet.Applet {
	return applet.New(runEnv, "env", "[-i0] [-u NAME]... [-] [NAME=VALUE]... [PROG ARGS]")
}

func runEnv(c *applet.Call) int {
	o := c.Getopt("+iu:0", "ignore-environment=i", "unset=u:", "null=0")
	// A copy, as it is changed in place below and the process keeps its own.
	env := append([]string(nil), c.P.Env...)
	args := o.Args
	// A lone dash is the old -i.
	if o.Has('i') || len(args) > 0 && args[0] == "-" {
		// Empty and not nil, which Become takes for the process's environment.
		env = []string{}
		if len(args) > 0 && args[0] == "-" {
			args = args[1:]
		}
	}
	for _, u := range o.Value['u'] {
		env = unsetEnv(env, u)
	}
	// The first word without = is the program.
	for len(args) > 0 && strings.Contains(args[0], "=") {
		name, _, _ := strings.Cut(args[0], "=")
		replaced := false
		for i, kv := range env {
			if strings.HasPrefix(kv, name+"=") {
				env[i] = args[0]
				replaced = true
			}
		}
		if !replaced {
			env = append(env, args[0])
		}
		args = args[1:]
	}
	// The program replaces env in its process, so its parent is env's.
	if len(args) > 0 {
		return c.Become(args, env, applet.CantExec)
	}
	end := "\n"
	if o.Has('0') {
		end = "\x00"
	}
	for _, kv := range env {
		c.Print(kv, end)
	}
	return 0
}

// unsetEnv returns the environment without a variable; the caller's stays.
func unsetEnv(env []string, name string) []string {
	out := env[:0:0]
	for _, kv := range env {
		if !strings.HasPrefix(kv, name+"=") {
			out = append(out, kv)
		}
	}
	return out
}
