package envtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const runtimeModule = "sigs.k8s.io/controller-runtime"

// suite is one of controller-runtime's.
type suite struct {
	pkg string // below its module
	// bare has the API without controllers: the specs expect that nobody acts on what they
	// write. Others make pods, which need a service account, which a controller makes.
	bare bool
}

// inBubbles are the suites that are run.
var inBubbles = []suite{{pkg: "pkg/client"}, {pkg: "pkg/cluster"}, {pkg: "pkg/source", bare: true}, {pkg: "pkg/controller/controllerutil"}}

// ran is how many specs a suite says it ran.
var ran = regexp.MustCompile(`Ran (\d+) of (\d+) Specs`)

// run runs a suite in a directory of its module.
func (s *suite) run(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-v", "-count=1", "-mod=mod", "./"+s.pkg)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	found := ran.FindSubmatch(out)
	if err != nil || found == nil || string(found[1]) == "0" {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s: %s", s.pkg, found[0])
}

// module copies controller-runtime, as its module has it, to a directory of the test's,
// where tests may be added.
func module(t *testing.T) string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", runtimeModule).Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "controller-runtime")
	if err := os.CopyFS(dir, os.DirFS(strings.TrimSpace(string(out)))); err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	edit := exec.Command("go", "mod", "edit", "-require=github.com/drydock-sim/drydock@v0.0.0", "-replace=github.com/drydock-sim/drydock="+here)
	edit.Dir = dir
	if out, err := edit.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// addMain gives a suite a TestMain that has it run in a bubble: envtest finds the
// cluster by its own variables.
func (s *suite) addMain(t *testing.T, dir string) {
	dir = filepath.Join(dir, s.pkg)
	files, err := filepath.Glob(filepath.Join(dir, "*_suite_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no suite: %v", dir, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`(?m)^package (\w+)`).FindSubmatch(text)[1]
	var b bytes.Buffer
	fmt.Fprintf(&b, `package %s

import (
	"os"
	"testing"

	"github.com/drydock-sim/drydock/drydocktest"
)

func TestMain(m *testing.M) {
	os.Exit(drydocktest.Main(m, drydocktest.Options{NoControlPlane: %t}, func(c *drydocktest.Cluster) {
		os.Setenv("KUBECONFIG", c.Kubeconfig("suite"))
		os.Setenv("USE_EXISTING_CLUSTER", "true")
	}))
}
`, name, s.bare)
	if err := os.WriteFile(filepath.Join(dir, "drydock_test.go"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestInBubbles: a file with a TestMain more, and nothing else, has a suite run in virtual
// time.
func TestInBubbles(t *testing.T) {
	dir := module(t)
	for _, s := range inBubbles {
		t.Run(s.pkg, func(t *testing.T) {
			s.addMain(t, dir)
			s.run(t, dir)
		})
	}
}
