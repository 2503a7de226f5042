package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// survived is the verdict on a mutant that nothing noticed, before what else is known of it.
const survived = "SURVIVED"

// Where what tests the whole is.
const (
	module  = "github.com/drydock-sim/drydock/"
	library = "scenarios/library"
)

// wholes are packages whose tests are tried on every mutant that they reach,
// after the library: the recordings first.
var wholes = []string{"scenarios/parity", "scenarios/parity/cluster", "sim/apiserver/internal/store", "up/parity", "sim/facade", "sim", "scenarios", "up", "drydocktest"}

// batch is how many scenarios a process runs.
const batch = 8

// check is something that may notice a mutant: the tests of a package, or a scenario.
type check struct {
	name    string // the package's folder, or the scenario's file
	binary  string // of a package
	cpu     time.Duration
	reaches map[int]bool
	hash    string // of a scenario
}

// built is the code with all mutants in it.
type built struct {
	dir       string
	drydock   string
	tests     map[string]*check // by folder
	scenarios []*check          // from the fastest to the slowest
}

func (b *built) remove() { os.RemoveAll(b.dir) }

// build builds everything with the mutants in it, and has it run once without one.
func build(ctx context.Context, mutants []*mutant) (_ *built, err error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	b := &built{dir: dir, drydock: filepath.Join(dir, "drydock"), tests: map[string]*check{}}
	defer func() {
		if err != nil {
			b.remove()
		}
	}()
	list, err := overlay(dir, mutants)
	if err != nil {
		return nil, err
	}
	gocmd := func(args ...string) error {
		start := time.Now()
		out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		fmt.Printf("go %s: %.0f s\n", strings.Join(args[:min(4, len(args))], " "), time.Since(start).Seconds())
		return nil
	}
	if err := gocmd("build", "-overlay", list, "-ldflags=-s -w", "-o", b.drydock, "./cmd/drydock"); err != nil {
		return nil, err
	}
	for i, group := range apart(testsOf(mutants)) {
		into := filepath.Join(dir, strconv.Itoa(i))
		args := []string{"test", "-c", "-vet=off", "-overlay", list, "-ldflags=-s -w", "-o", into + "/"}
		for _, folder := range group {
			args = append(args, "./"+folder)
			b.tests[folder] = &check{name: folder, binary: filepath.Join(into, filepath.Base(folder)+".test")}
		}
		if err := os.Mkdir(into, 0o700); err != nil {
			return nil, err
		}
		if err := gocmd(args...); err != nil {
			return nil, err
		}
	}
	return b, b.reach(ctx)
}

// testsOf returns the folders of the packages whose tests may notice the mutants: their
// own, those that they are internal parts of, and the wholes.
func testsOf(mutants []*mutant) []string {
	folders := slices.Clone(wholes)
	for _, m := range mutants {
		folders = append(folders, m.near()...)
	}
	slices.Sort(folders)
	return slices.DeleteFunc(slices.Compact(folders), func(folder string) bool {
		tests, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		return err != nil || len(tests) == 0
	})
}

// near returns the folder of a mutant's package, and those that it is an internal part of.
func (m *mutant) near() []string {
	folder := strings.TrimPrefix(m.pkg, module)
	folders := []string{folder}
	for {
		i := strings.LastIndex(folder, "/internal/")
		if i < 0 {
			return folders
		}
		folder = folder[:i]
		folders = append(folders, folder)
	}
}

// apart puts folders into groups in each of which no two have the same last element,
// since test binaries are named by that.
func apart(folders []string) (groups [][]string) {
	for _, f := range folders {
		i := slices.IndexFunc(groups, func(g []string) bool {
			return !slices.ContainsFunc(g, func(other string) bool { return filepath.Base(other) == filepath.Base(f) })
		})
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], f)
	}
	return groups
}

// reach runs everything without a mutant, and leaves out what fails.
func (b *built) reach(ctx context.Context) error {
	start := time.Now()
	for folder, c := range b.tests {
		if out, err := b.note(ctx, c, b.test(ctx, c, 0, "")); err != nil {
			fmt.Printf("%s fails without a mutant and is left out: %s\n", folder, failing(out))
			delete(b.tests, folder)
		}
	}
	var files []string
	if err := filepath.WalkDir(library, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".yaml") {
			if src, err := os.ReadFile(path); err == nil && bytes.Contains(src, []byte("kind: Scenario")) {
				files = append(files, path)
			}
		}
		return err
	}); err != nil {
		return err
	}
	for _, file := range files {
		c := &check{name: file}
		out, err := b.note(ctx, c, b.run(ctx, 0, c))
		if err != nil {
			fmt.Printf("%s fails without a mutant and is left out\n", file)
			continue
		}
		c.hash = hashes(out)[file]
		b.scenarios = append(b.scenarios, c)
	}
	slices.SortFunc(b.scenarios, func(x, y *check) int { return cmp.Compare(x.cpu, y.cpu) })
	fmt.Printf("%d packages and %d scenarios without a mutant: %.0f s\n", len(b.tests), len(b.scenarios), time.Since(start).Seconds())
	return ctx.Err()
}

// note runs a command of a check and notes what it took and reached.
func (b *built) note(ctx context.Context, c *check, cmd *exec.Cmd) ([]byte, error) {
	file := filepath.Join(b.dir, "reached")
	if err := os.RemoveAll(file); err != nil {
		return nil, err
	}
	cmd.Env = append(cmd.Env, reachedVar+"="+file)
	out, err := cmd.Output()
	c.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	c.reaches = map[int]bool{}
	list, readErr := os.ReadFile(file)
	if readErr != nil && !os.IsNotExist(readErr) {
		return nil, readErr
	}
	for id := range strings.FieldsSeq(string(list)) {
		if n, err := strconv.Atoi(id); err == nil {
			c.reaches[n] = true
		}
	}
	return out, err
}

// The limits of a command: a mutant may have it run or grow for ever. The time is the
// processor's, since others may keep the machine busy, beside a wide one on the clock.
const (
	memoryKB = 12 << 20
	longest  = 10 * time.Minute
)

// limited is a command with a mutant under limits: ten times the processor time that it
// takes without, if that is known.
func (b *built) limited(ctx context.Context, id int, takes time.Duration, dir string, args ...string) *exec.Cmd {
	seconds := 600
	if takes > 0 {
		seconds = int(10*takes.Seconds()) + 20
	}
	script := fmt.Sprintf(`ulimit -t %d -v %d; exec "$@"`, seconds, memoryKB)
	ctx, cancel := context.WithTimeout(ctx, longest)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, "sh"}, args...)...)
	cmd.Cancel = func() error {
		cancel()
		return cmd.Process.Kill()
	}
	cmd.WaitDelay = time.Second
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), chosenVar+"="+strconv.Itoa(id), "GOMAXPROCS=2")
	return cmd
}

// test is the command that runs a package's tests, or those that an expression names.
func (b *built) test(ctx context.Context, c *check, id int, only string) *exec.Cmd {
	args := []string{c.binary, "-test.failfast", "-test.timeout=9m"}
	if only != "" {
		args = append(args, "-test.run="+only)
	}
	return b.limited(ctx, id, c.cpu, c.name, args...)
}

// run is the command that runs scenarios.
func (b *built) run(ctx context.Context, id int, list ...*check) *exec.Cmd {
	args := []string{b.drydock, "run", "-o", "json"}
	var takes time.Duration
	for _, c := range list {
		args = append(args, c.name)
		takes += c.cpu
	}
	return b.limited(ctx, id, takes, "", args...)
}

// hashes returns the hashes of scenarios by file, from what drydock run says in JSON.
func hashes(out []byte) map[string]string {
	var doc struct {
		Results []struct{ File, Hash string }
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		return nil
	}
	by := map[string]string{}
	for _, r := range doc.Results {
		by[r.File] += r.Hash
	}
	return by
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// failing returns the tests that failed.
func failing(out []byte) []string {
	var names []string
	for _, m := range failed.FindAllSubmatch(out, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// try returns the verdict on a mutant.
func (b *built) try(ctx context.Context, m *mutant) string {
	near := m.near()
	for _, folder := range near {
		if by := b.killedByTests(ctx, m, folder); by != "" {
			return by
		}
	}
	var reach []*check
	for _, c := range b.scenarios {
		if c.reaches[m.id] {
			reach = append(reach, c)
		}
	}
	var other []string
	for some := range slices.Chunk(reach, batch) {
		out, err := b.run(ctx, m.id, some...).Output()
		if err != nil {
			return "killed by a scenario of " + some[0].name + " and others"
		}
		for file, hash := range hashes(out) {
			if i := slices.IndexFunc(some, func(c *check) bool { return c.name == file }); i >= 0 && some[i].hash != hash {
				other = append(other, file)
			}
		}
	}
	for _, folder := range wholes {
		if slices.Contains(near, folder) {
			continue
		}
		if by := b.killedByTests(ctx, m, folder); by != "" {
			return by
		}
	}
	switch {
	case ctx.Err() != nil:
		return ""
	case len(other) > 0:
		slices.Sort(other)
		return fmt.Sprintf("%s (other hashes of %d scenarios: %s)", survived, len(other), strings.Join(other[:min(3, len(other))], " "))
	case len(reach) > 0:
		return fmt.Sprintf("%s (%d scenarios alike)", survived, len(reach))
	}
	for folder, c := range b.tests {
		if c.reaches[m.id] {
			return fmt.Sprintf("%s (no scenario; reached by %s)", survived, folder)
		}
	}
	return survived + " (never reached)"
}

// killedByTests tries a mutant on the tests of a package and returns what it was killed
// by; "": it wasn't. A test that fails without the mutant as well kills nothing.
func (b *built) killedByTests(ctx context.Context, m *mutant, folder string) string {
	c := b.tests[folder]
	if c == nil || !c.reaches[m.id] {
		return ""
	}
	for range 2 {
		out, err := b.test(ctx, c, m.id, "").Output()
		if err == nil || ctx.Err() != nil {
			return ""
		}
		names := failing(out)
		if len(names) == 0 {
			return "killed by " + folder + ", which ended"
		}
		if b.test(ctx, c, 0, "^("+strings.Join(names, "|")+")$").Run() == nil {
			return "killed by " + folder + " " + names[0]
		}
	}
	return ""
}
