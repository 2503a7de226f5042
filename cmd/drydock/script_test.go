package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts call this binary as drydock: what they see of a command
// line is what a shell sees.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"drydock": main})
}

// TestScripts runs testdata/script: what a user types and what comes of it. -update
// writes the files that scripts compare output with anew.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			recording, err := filepath.Abs(recordings)
			if err != nil {
				return err
			}
			env.Setenv("RECORDINGS", recording)
			return copyScenarios(filepath.Join(env.WorkDir, "testdata"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "bad": badCommand, "await": await},
	})
}

// exits runs a command and wants an exit code: exits CODE COMMAND ...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ...")
	}
	code := 0
	var ended *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &ended) {
		code = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// await waits for a file with a text in it: await FILE TEXT.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await FILE TEXT")
	}
	for range 3000 {
		if data, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && strings.Contains(string(data), args[1]) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s: no %q", args[0], args[1])
}

// badCommand is the command bad: exits for bad input: exit code 2, nothing on stdout and one line on stderr.
func badCommand(ts *testscript.TestScript, neg bool, args []string) {
	exits(ts, neg, append([]string{"2"}, args...))
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("stdout: %q", out)
	}
	if errs := ts.ReadFile("stderr"); strings.Count(errs, "\n") != 1 {
		ts.Fatalf("stderr is not one line: %q", errs)
	}
}

// copyScenarios puts the two scenarios of testdata where a script finds them.
func copyScenarios(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, file := range []string{crash, flaky} {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
