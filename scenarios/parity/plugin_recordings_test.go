package parity

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const pluginRecordings = "testdata/plugins"

func readPluginCase(t *testing.T, file string) *PluginCase {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ReadPlugins(b)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return c
}

// TestPluginRecordings replays the recordings of the real kubelet with plugins.
func TestPluginRecordings(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(pluginRecordings, "*.json"))
	if err != nil || len(files) < 19 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for i, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			if testing.Short() && i%10 != 0 {
				t.Skip("a tenth is enough for the race detector")
			}
			c := readPluginCase(t, file)
			seen, err := c.Replay(Options{})
			if err != nil {
				t.Fatal(err)
			}
			if verdict, err := JudgePlugins(c, seen); err != nil || len(verdict) > 0 {
				t.Errorf("differs: %s, %v", verdict, err)
			}
			without := readPluginCase(t, file)
			without.runs = nil
			again, err := without.Replay(Options{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(encode(seen), encode(again)) {
				t.Error("the replay depends on the runs")
			}
		})
	}
}
