package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const recordings = "testdata/recordings"

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
	if err != nil || len(files) < 150 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	return files
}

// TestRecordings replays the recordings of the real control plane. What differs must be exactly what
// is listed, each with its reason.
func TestRecordings(t *testing.T) {
	b, err := os.ReadFile("testdata/differing.json")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	if err := json.Unmarshal(b, &known); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
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

// TestReplayReadsNoRuns holds that what a replay shows depends on the nodes and the actions alone:
// not on what was recorded, and not on what the case is called.
func TestReplayReadsNoRuns(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(recordings, "sts-rolling.json"))
	if err != nil {
		t.Fatal(err)
	}
	var o object
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	with := replayed(t, b)
	delete(o, "runs")
	o["name"], o["kind"] = "other", "other"
	if without := replayed(t, []byte(dump(o))); with != without {
		t.Errorf("a replay without runs, under another name, shows something else:\n%s\n%s", with, without)
	}
}

func replayed(t *testing.T, data []byte) string {
	t.Helper()
	c, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := c.Replay(Options{})
	if err != nil {
		t.Fatal(err)
	}
	return dump(seen)
}
