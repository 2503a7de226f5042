package parity

import (
	"os"
	"strings"
	"testing"
)

// FuzzParse holds that any file is either a case or an error of one line.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"guaranteed-qos", "node-static-pod", "resize-infeasible"} {
		b, err := os.ReadFile(recordings + "/" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"name": "x", "actions": [{"at": 1, "action": "create"}], "runs": [{}, null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data)
		switch {
		case err != nil && strings.TrimSpace(err.Error()) == "":
			t.Error("an empty error")
		case err == nil && c.Name == "":
			t.Error("a case without a name")
		case err == nil:
			judge(c.runs, object{}) // whatever the runs hold
		}
	})
}
