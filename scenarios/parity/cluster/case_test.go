package cluster

import (
	"strings"
	"testing"
)

// TestMistakes reads files that are no recordings: an error says where, and what was meant.
func TestMistakes(t *testing.T) {
	const begin, end = `{"name": "x", "duration": 5, "nodes": [{"name": "a"}], "actions": [` + "\n", "]}"
	for _, tc := range []struct{ data, want string }{
		{begin + `{"at": 1, "do": "creat", "object": {}}` + end, `2:1: actions[0]: do: "creat" is none that recordings have (did you mean "create"?)`},
		{begin + `{"at": 1, "do": "cordon"}` + end, `2:1: actions[0]: cordon: node: required`},
		{begin + `{"at": -1, "do": "cordon", "node": "a"}` + end, `2:1: actions[0]: at: is negative`},
		{begin + `{"at": 1, "do": "scale", "kind": "Deployment", "name": 3, "replicas": 1}` + end, `2:57: actions.name: cannot be of JSON's type number`},
		{`{"name": "x", "duration": 5, "nodes": []}`, `nodes: required`},
		{`{"name": "x", "nodes": [{"name": "a"}]}`, `duration: required`},
		{`{"name": "x", "duration": 5, "nodes": [{"name": "a"}, {"name": "a"}]}`, `nodes[1]: name: "a" is empty or there are two`},
	} {
		_, err := Read([]byte(tc.data))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s\n%v, want %s", tc.data, err, tc.want)
		}
	}
}

// TestSameSeed replays a case twice with a seed: the same comes of it.
func TestSameSeed(t *testing.T) {
	c := readCase(t, recordings+"/node-out-of-service.json")
	var seen [2]string
	for i := range seen {
		o, err := c.Replay(Options{Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		seen[i] = dump(o)
	}
	if seen[0] != seen[1] {
		t.Errorf("two replays with one seed differ:\n%s\n%s", seen[0], seen[1])
	}
}
