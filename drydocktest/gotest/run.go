package gotest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// SeedVar is the variable of the environment that replaces the seeds of tests.
const SeedVar = "DRYDOCK_SEED"

// Options say what is run.
type Options struct {
	// Args are go test's: packages and flags.
	Args []string
	// Seeds are those under which everything is run, one after the other. None: once, under
	// the seeds that tests give themselves.
	Seeds []uint64
	// NoOverlay leaves the order of maps and selects to chance.
	NoOverlay bool
	// Verbose writes the output of tests that pass, too.
	Verbose bool
	// Out takes the output of tests that fail, and Err what go itself says.
	Out, Err io.Writer
}

// event is a line of go test -json (cmd/test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64
	Output  string
}

// Run runs go test and returns what came of it. The error says that it could not be run;
// tests that fail are none.
func Run(ctx context.Context, o Options) (*Summary, error) {
	args := []string{"test", "-json"}
	if !o.NoOverlay {
		dir, err := os.MkdirTemp("", "drydock-test-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
		if err != nil {
			return nil, fmt.Errorf("go env GOROOT: %w", err)
		}
		overlay, err := writeOverlay(strings.TrimSpace(string(goroot)), dir)
		if err != nil {
			return nil, err
		}
		args = append(args, "-overlay="+overlay)
	}
	args = append(args, o.Args...)
	s := &Summary{}
	for _, seed := range o.seeds() {
		if err := o.once(ctx, args, seed, s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// seeds are those that are run; nil stands for the tests' own.
func (o *Options) seeds() (out []*uint64) {
	for i := range o.Seeds {
		out = append(out, &o.Seeds[i])
	}
	if out == nil {
		out = []*uint64{nil}
	}
	return out
}

// once runs go test under one seed.
func (o *Options) once(ctx context.Context, args []string, seed *uint64, s *Summary) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = os.Environ()
	if seed != nil {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", SeedVar, *seed))
	}
	cmd.Stderr = o.Err
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	texts := map[string]*bytes.Buffer{} // of tests and packages that have not ended
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		e := event{}
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(o.Out, lines.Text()) // of a build, or of a program that wrote past package testing
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output":
			if texts[key] == nil {
				texts[key] = &bytes.Buffer{}
			}
			texts[key].WriteString(e.Output)
		case "build-output":
			fmt.Fprint(o.Out, e.Output)
		case "pass", "fail", "skip":
			if text := texts[key]; text != nil && (e.Action == "fail" || o.Verbose) {
				_, _ = text.WriteTo(o.Out) // what can't be shown is no failure of the test's
			}
			delete(texts, key)
			s.add(e, seed)
		}
	}
	ferr := cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(ferr, &exit) && exit.ExitCode() == 1 {
		ferr = nil // tests or builds failed, as the events say
	}
	return errors.Join(lines.Err(), ferr)
}
