package parity_test

import (
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/up/parity"
)

var recordings = flag.String("recordings", "testdata/recordings", "the folder of the recordings")

// server starts an API for a test.
func server(t *testing.T) parity.Server {
	t.Helper()
	s, stop, err := parity.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func readCase(t *testing.T, file string) *parity.Case {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := parity.Parse(b)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return c
}

// TestRecordings replays what kube-apiserver v1.36.3 was asked, each recording on a server of
// its own. Those of kubectl are for `make clients`.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(*recordings, "*.json"))
	if err != nil || len(files) < 300 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			c := readCase(t, file)
			if c.Kubectl() {
				t.Skip("it runs kubectl")
			}
			seen := parity.Replay(t.Context(), server(t), c)
			for _, d := range parity.Judge(c, seen) {
				t.Error(d)
			}
			// What the recording doesn't say is not what was seen.
			rng := rand.New(rand.NewPCG(1, 1))
			for range 10 {
				if damaged, how := damage(c, rng); len(parity.Judge(damaged, seen)) == 0 {
					t.Error("not noticed: " + how)
				}
			}
		})
	}
}

// damage changes one place of a recording's responses and says how.
func damage(c *parity.Case, rng *rand.Rand) (*parity.Case, string) {
	out := *c
	out.Responses = make([]parity.Answer, len(c.Responses))
	var places []place
	for i, r := range c.Responses {
		copied, ok := clone(r).(map[string]any)
		if !ok {
			panic("an answer is no object")
		}
		out.Responses[i] = copied
		places = leaves(copied, strconv.Itoa(i), places)
	}
	p := places[rng.IntN(len(places))]
	return &out, p.change(rng)
}

// place is a field, or an element of a list.
type place struct {
	path   string
	object map[string]any
	key    string
	list   []any
	i      int
}

func (p place) value() any {
	if p.object != nil {
		return p.object[p.key]
	}
	return p.list[p.i]
}

func (p place) set(v any) {
	if p.object != nil {
		p.object[p.key] = v
		return
	}
	p.list[p.i] = v
}

func leaves(v any, path string, out []place) []place {
	switch x := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) {
			at := path + "." + k
			out = leaves(x[k], at, append(out, place{path: at, object: x, key: k}))
		}
	case []any:
		for i := range x {
			at := path + "." + strconv.Itoa(i)
			out = leaves(x[i], at, append(out, place{path: at, list: x, i: i}))
		}
	}
	return out
}

func (p place) change(rng *rand.Rand) string {
	if p.object != nil && rng.IntN(3) == 0 {
		delete(p.object, p.key)
		return "dropped " + p.path
	}
	switch x := p.value().(type) {
	case map[string]any:
		x["zzz"] = true
		return "added to " + p.path
	case []any:
		p.set(append(x, "zzz"))
		return "lengthened " + p.path
	case string:
		p.set(x + "y")
	case json.Number:
		p.set(x + "1")
	case bool:
		p.set(!x)
	default:
		p.set("zzz")
	}
	return "altered " + p.path
}

func clone(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, v := range x {
			out[k] = clone(v)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = clone(x[i])
		}
		return out
	}
	return v
}
