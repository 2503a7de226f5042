package document_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/scenarios/expect"
)

// TestYAMLRoundTrips: each scenario of the library, written, is read as it was: what is written
// then is the same.
func TestYAMLRoundTrips(t *testing.T) {
	c, err := expect.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	err = filepath.WalkDir("../library", func(name string, d os.DirEntry, err error) error {
		if filepath.Ext(name) == ".yaml" {
			files = append(files, name)
		}
		return err
	})
	if err != nil || len(files) < 100 {
		t.Fatal(len(files), err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), "kind: Scenario") {
			continue
		}
		opts := document.LoadOptions{Compiler: c, ReadFile: os.ReadFile}
		list, err := document.Parse(f, data, opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			first, err := s.YAML()
			if err != nil {
				t.Errorf("%s: %v", f, err)
				continue
			}
			again, err := document.Parse(f, first, opts)
			if err != nil {
				t.Errorf("%s: %v\n%s", f, err, first)
				continue
			}
			if second, err := again[0].YAML(); err != nil || string(first) != string(second) {
				t.Errorf("%s: %v\n%s\nbecomes\n%s", f, err, first, second)
			}
		}
	}
}
