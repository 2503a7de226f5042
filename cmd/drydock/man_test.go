package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manDir is where `make man` wants the pages. They are made by a test, since the maker is of no
// use to who runs drydock.
var manDir = flag.String("man", "", "write the manual's pages to this directory")

// TestManPages makes a page for each command that people are to find.
func TestManPages(t *testing.T) {
	dir := *manDir
	if dir == "" {
		dir = t.TempDir()
	} else {
		var err error
		// Tests run in their package's directory, and make in the module's.
		if dir, err = filepath.Abs(filepath.Join("../..", dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root := newRoot()
	// A page's date would make two builds of a commit differ.
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: "drydock", Manual: "Drydock"}
	if err := doc.GenManTree(root, header, dir); err != nil {
		t.Fatal(err)
	}
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		if !c.IsAvailableCommand() && c != root {
			return
		}
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			return
		}
		if !strings.Contains(string(page), ".SH SYNOPSIS") {
			t.Errorf("%s has no synopsis", name)
		}
		for _, sub := range c.Commands() {
			each(sub)
		}
	}
	each(root)
}
