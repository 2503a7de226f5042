package parity

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const recordings = "testdata/recordings"

// differing reads the list of recordings whose replay is known to differ, with
// the reason of each.
func differing(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile("testdata/differing.json")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func readCase(t *testing.T, file string) *Case {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(b)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return c
}

func recordingFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(recordings, "*.json"))
	if err != nil || len(files) < 60 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	return files
}

// TestRecordings replays the recordings of the real kubelet. What differs must
// be exactly what is listed.
func TestRecordings(t *testing.T) {
	known := differing(t)
	found := make(map[string]bool)
	for i, file := range recordingFiles(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		found[name] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && i%10 != 0 {
				t.Skip("a tenth is enough for the race detector")
			}
			c := readCase(t, file)
			seen, err := c.Replay(Options{})
			if err != nil {
				t.Fatal(err)
			}
			verdict, err := Judge(c, seen)
			if err != nil {
				t.Fatal(err)
			}
			switch reason, listed := known[name]; {
			case len(verdict) > 0 && !listed:
				t.Errorf("differs: %s", verdict)
			case len(verdict) == 0 && listed:
				t.Errorf("does not differ any more; it was said to: %s", reason)
			}
		})
	}
	for name, reason := range known {
		if !found[name] {
			t.Errorf("differing.json lists %s, which is no recording", name)
		}
		if strings.TrimSpace(reason) == "" {
			t.Errorf("differing.json gives no reason for %s", name)
		}
	}
}

// TestReplayReadsNoRuns holds that what a replay shows depends on the case
// alone, never on what was recorded.
func TestReplayReadsNoRuns(t *testing.T) {
	for _, name := range []string{"crashloop-always", "node-kubelet-restart"} {
		file := filepath.Join(recordings, name+".json")
		with := readCase(t, file)
		without := readCase(t, file)
		without.runs = nil
		a, err := with.Replay(Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := without.Replay(Options{})
		if err != nil {
			t.Fatal(err)
		}
		if x, y := encode(a), encode(b); !slices.Equal(x, y) {
			t.Errorf("%s: the replay depends on the runs", name)
		}
		if without.Compared() {
			t.Errorf("%s: compared without runs", name)
		}
	}
}
