package scenarios

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/drydock-sim/drydock/scenarios/expect"
)

// LoadPaths loads the scenarios of files, and of directories with all that is
// below them: there, files that end in .yaml or .yml and hold a scenario, in
// the order of their paths; manifests and workloads are passed over; - is standard input. What is
// wrong with any of them comes back as LoadErrors.
func LoadPaths(paths []string, opts LoadOptions) ([]*Scenario, error) {
	if opts.Compiler == nil {
		c, err := expect.NewCompiler()
		if err != nil {
			return nil, err
		}
		opts.Compiler = c
	}
	var out []*Scenario
	var errs LoadErrors
	for _, p := range paths {
		files, err := scenarioFiles(p)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			list, err := Load(f, opts)
			var le LoadErrors
			switch {
			case errors.As(err, &le):
				errs = append(errs, le...)
			case err != nil:
				return nil, err
			}
			out = append(out, list...)
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return out, nil
}

// scenarioFiles returns p itself, or the scenario files below it.
func scenarioFiles(p string) ([]string, error) {
	if p == "-" {
		return []string{p}, nil
	}
	info, err := os.Stat(p)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	if !info.IsDir() {
		return []string{p}, nil
	}
	var files []string
	err = filepath.WalkDir(p, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, ".yml") {
			return err
		}
		data, err := ReadFile(name)
		if err == nil && isScenario(data) {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", p, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no scenario below this directory", p)
	}
	return files, nil
}

// isScenario reports whether a text is a scenario, also one with a mistake in its head, from a
// manifest or a Workload (package scale) that lies beside it.
func isScenario(data []byte) bool {
	ours, workload := false, false
	for _, m := range headLine.FindAllSubmatch(data, -1) {
		switch key, value := string(m[1]), string(m[2]); {
		case key == "kind" && value == Kind:
			return true
		case key == "kind" && value == "Workload":
			workload = true
		case key == "apiVersion" && strings.HasPrefix(value, "drydock.dev/"):
			ours = true
		}
	}
	return ours && !workload
}

// headLine is a line of a document's head, with its key and value.
var headLine = regexp.MustCompile(`(?m)^[ \t]*["']?(apiVersion|kind)["']?:[ \t]+["']?([^"'\s#]+)`)
