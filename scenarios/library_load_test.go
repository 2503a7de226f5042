package scenarios_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/scenarios"
	"github.com/drydock-sim/drydock/scenarios/expect"
)

// TestLibraryLoads loads every scenario of the library, and wants each to say
// what it shows, to have a name of its own, and its directory as area label.
func TestLibraryLoads(t *testing.T) {
	c, err := expect.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	err = filepath.WalkDir("library", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".yaml") || filepath.Base(filepath.Dir(path)) == "manifests" {
			return err
		}
		list, err := scenarios.Load(path, scenarios.LoadOptions{Compiler: c})
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for _, s := range list {
			m := s.Metadata
			if m.Description == "" {
				t.Errorf("%s has no description", path)
			}
			if area := filepath.Base(filepath.Dir(path)); m.Labels["area"] != area {
				t.Errorf("%s: the label area is %q, not %q", path, m.Labels["area"], area)
			}
			if other := names[m.Name]; other != "" {
				t.Errorf("%s has the name of %s", path, other)
			}
			names[m.Name] = path
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
