package scenarios_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/scenarios/expect"
)

// TestLibraryLoads loads every scenario of the library.
func TestLibraryLoads(t *testing.T) {
	c, err := expect.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir("library", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		if _, err := scenarios.Load(path, scenarios.LoadOptions{Compiler: c}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestStarterLoads(t *testing.T) {
	list, err := scenarios.Parse("scenario.yaml", []byte(scenarios.Starter()), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || len(list[0].Spec.Expect) != 6 {
		t.Errorf("got %+v", list)
	}
}
