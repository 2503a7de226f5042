package applet

import (
	"cmp"
	"errors"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
)

// defaultPath is searched where there is no PATH.
const defaultPath = "/sbin:/usr/sbin:/bin:/usr/bin"

// Find looks a program up in PATH.
func (c *Call) Find(name string, env []string) (string, error) {
	return c.P.LookPath(name, SearchPath(env))
}

// SearchPath is the PATH of an environment. The last PATH counts, as with getenv after
// duplicates.
func SearchPath(env []string) string {
	search := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = v
		}
	}
	search = cmp.Or(search, defaultPath)
	return search
}

// Spawn starts a program; nil env and fds mean the own ones. What was printed
// is written first: the child's output comes after it. The child inherits user, directory and
// ignored signals.
func (c *Call) Spawn(argv, env []string, fds []kernel.File) (*kernel.Process, error) {
	c.Out.Flush()
	if env == nil {
		env = c.P.Env
	}
	path, err := c.Find(argv[0], env)
	if err != nil {
		return nil, err
	}
	if fds == nil {
		fds = c.P.FDs()
	}
	return c.P.Spawn(c.Ctx, kernel.Spec{Path: path, Argv: argv, Env: env, FDs: fds})
}

// Wait waits for a child and returns its status as a shell has it: 128 and the
// signal for one that a signal killed. Signals of the applet's own don't end
// it.
func (c *Call) Wait(child *kernel.Process) int {
	for {
		exit, err := c.P.Wait(c.Ctx, child)
		if err == nil {
			return exit.Code
		}
		if !errors.Is(err, kernel.ErrInterrupted) || c.Ctx.Err() != nil {
			return 127
		}
	}
}

// Become replaces the applet by a program, in the same process, so that whoever
// waits for the applet gets the program's end. It returns the status, with a
// message if the program can't be run. It is how env, nice, timeout's child and others end.
func (c *Call) Become(argv, env []string, message string) int {
	c.Out.Flush()
	if env == nil {
		env = c.P.Env
	}
	path, err := c.Find(argv[0], env)
	if err == nil {
		var code int
		if code, err = c.P.Exec(c.Ctx, path, argv, env); err == nil {
			return code
		}
	}
	c.Errorf(message, argv[0], Strerror(err))
	return NotRun(err)
}

// NotRun is the status for a program that can't be run, as POSIX has it for the
// shell: 127 if it is not there, else 126. ENOENT alone is 127.
func NotRun(err error) int {
	if errors.Is(err, linux.ENOENT) {
		return 127
	}
	return 126
}

// CantExec is busybox's message for that.
const CantExec = "can't execute '%s': %s"
