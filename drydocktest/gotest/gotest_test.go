package gotest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOverlay: the installed Go has what the overlay changes, once each.
func TestOverlay(t *testing.T) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writeOverlay(strings.TrimSpace(string(goroot)), t.TempDir()); err != nil {
		t.Error(err)
	}
	if _, err := writeOverlay(strings.TrimSpace(string(goroot)), filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("a directory that is not there was written to")
	}
}

// order prints in which order a map is ranged over, which ready case selects take, and
// what math/rand/v2 draws, all in a bubble.
const order = `package order

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

func Test(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := map[string]int{}
		for i := range 100 {
			m[fmt.Sprint("key", i)] = i
		}
		var keys, cases []int
		for _, v := range m {
			keys = append(keys, v)
		}
		a, b, c := make(chan int, 100), make(chan int, 100), make(chan int, 100)
		for range 100 {
			a <- 0
			b <- 1
			c <- 2
		}
		taken := [3]int{}
		for range 60 {
			i := 0
			select {
			case i = <-a:
			case i = <-b:
			case i = <-c:
			}
			cases = append(cases, i)
			taken[i]++
		}
		for i, n := range taken {
			if n < 5 {
				t.Errorf("case %d was taken %d of 60 times", i, n)
			}
		}
		fmt.Println("ORDER", keys, cases, rand.Uint64())
	})
}
`

// TestOrder: with the overlay a program is the same again in what is left to chance without
// it, and no case of a select starves. It builds Go's own packages anew.
func TestOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("builds Go's own packages anew")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module order\n\ngo 1.26\n", "order_test.go": order} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	orders := func(o Options) map[string]bool {
		var out strings.Builder
		o.Args, o.Out, o.Err, o.Verbose = []string{"-count=1", "."}, &out, &out, true
		found := map[string]bool{}
		for range 3 {
			out.Reset()
			s, err := Run(t.Context(), o)
			if err != nil || !s.OK() || s.Passed != 1 {
				t.Fatalf("%v, %+v\n%s", err, s, &out)
			}
			for line := range strings.Lines(out.String()) {
				if strings.HasPrefix(line, "ORDER ") {
					found[line] = true
				}
			}
		}
		return found
	}
	if n := len(orders(Options{})); n != 1 {
		t.Errorf("%d orders with the overlay", n)
	}
	if n := len(orders(Options{NoOverlay: true})); n != 3 {
		t.Errorf("%d orders without it", n)
	}
}

// TestSummary: what failed under which seeds is told, with a line that repeats it.
func TestSummary(t *testing.T) {
	seeds := []uint64{4, 5}
	s := &Summary{}
	for _, e := range []struct {
		event
		seed int
	}{
		{event{Action: "pass", Package: "p", Test: "TestA"}, 0},
		{event{Action: "fail", Package: "p", Test: "TestB/x y"}, 0},
		{event{Action: "fail", Package: "p", Test: "TestB"}, 0},
		{event{Action: "fail", Package: "p"}, 0},
		{event{Action: "fail", Package: "q"}, 0},
		{event{Action: "pass", Package: "p", Test: "TestB/x y"}, 1},
		{event{Action: "skip", Package: "p", Test: "TestA"}, 1},
	} {
		s.add(e.event, &seeds[e.seed])
	}
	var out strings.Builder
	if err := s.Write(&out); err != nil {
		t.Fatal(err)
	}
	const want = `FAIL p TestB/x y: 1 of 2 runs. drydock test --seeds 4 p -- -run '^TestB$/^x y$'
FAIL q: it could not be built, or its process ended
2 passed, 3 failed, 1 skipped
`
	if out.String() != want || s.OK() {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}
