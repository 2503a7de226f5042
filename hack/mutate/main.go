// Command mutate measures what the tests would miss. It makes small mistakes
// in the code, one at a time, and says which of them nothing notices:
// operators swapped, conditions negated, calls and assignments dropped.
//
//	go run ./hack/mutate [-n 300] [-seed 1] [-o FILE] [-survivors] [PREFIX...]
//
// All mutants are built at once. Each stands in the code beside what it takes
// the place of, and an environment variable chooses one, so that 300 mutants
// cost one build (an overlay: the tree is not touched) instead of 300:
//
//	if drydockmutant.On(17) != (x > y) {
//
// A first run without a mutant notes which tests and scenarios reach which
// mutants. A mutant is then given to what reaches it: the tests of its package,
// of the packages that it is an internal part of, the library, the recordings;
// the first failure kills it.
//
// The mutants are drawn from those of kubelet, sim/apiserver, sim/controlplane
// and fakecri without its applets, or of the files whose path begins with a
// PREFIX. A draw is a hash of the seed and of the mutant's function and text,
// so that a change elsewhere leaves it as it is. -o keeps the verdicts; with
// -survivors only those that survived in FILE are tried again.
//
// A line of a log is no mutant.
//
// Mutants that no test could kill, because they do the same, stand in
// equivalent.txt with the reason, and don't count.
package main

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
)

// areas are where mutants are drawn from unless the command line says other ones.
var areas = []string{"kubelet/", "sim/apiserver/", "sim/controlplane/", "fakecri/"}

// leftOut are parts of the areas with a job of their own: the applets.
var leftOut = []string{"fakecri/internal/busybox/"}

//go:embed equivalent.txt
var equivalents string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	count := flag.Int("n", 300, "how many mutants to draw")
	seed := flag.Int("seed", 1, "which mutants to draw")
	file := flag.String("o", "", "keep the verdicts in this `file`")
	again := flag.Bool("survivors", false, "try only those that survived in the file of -o")
	list := flag.Bool("list", false, "list the mutants and try none")
	at := flag.Int("p", 2, "how many mutants to try at once")
	flag.Parse()

	prefixes := flag.Args()
	if len(prefixes) == 0 {
		prefixes = areas
	}
	all, err := find(prefixes)
	if err != nil {
		return err
	}
	chosen := draw(all, *count, *seed)
	before, err := readVerdicts(*file)
	if err != nil {
		return err
	}
	same, err := readEquivalents(equivalents)
	if err != nil {
		return err
	}
	verdicts := map[string]string{}
	var todo []*mutant
	for _, m := range chosen {
		was := before[m.key]
		switch {
		case same[m.key]:
			verdicts[m.key] = "equivalent"
		case *again && was != "" && !strings.HasPrefix(was, survived):
			verdicts[m.key] = was
		default:
			todo = append(todo, m)
		}
	}
	fmt.Printf("%d places of %d, seed %d; %d to try\n", len(chosen), len(all), *seed, len(todo))
	if *list {
		for _, m := range todo {
			fmt.Printf("%s:%d\t%s\n", m.path, m.line, m.key)
		}
		return nil
	}
	if len(todo) > 0 {
		b, err := build(ctx, todo)
		if err != nil {
			return err
		}
		defer b.remove()
		var mu sync.Mutex
		var group sync.WaitGroup
		next := make(chan *mutant)
		for range *at {
			group.Go(func() {
				for m := range next {
					v := b.try(ctx, m)
					mu.Lock()
					verdicts[m.key] = v
					fmt.Printf("%s:%d\t%s\t%s\n", m.path, m.line, strings.TrimPrefix(m.key, m.path+" "), v)
					mu.Unlock()
				}
			})
		}
		for _, m := range todo {
			if ctx.Err() == nil {
				next <- m
			}
		}
		close(next)
		group.Wait()
	}
	if err := writeVerdicts(*file, chosen, verdicts); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return sum(chosen, verdicts)
}

// wanted is the part of the mutants that aren't equivalent that tests must kill.
const wanted = 0.95

// sum prints the score and fails if it is too low.
func sum(chosen []*mutant, verdicts map[string]string) error {
	var alive, same int
	for _, m := range chosen {
		switch v := verdicts[m.key]; {
		case strings.HasPrefix(v, survived):
			alive++
		case v == "equivalent":
			same++
		}
	}
	tried := len(chosen) - same
	if tried == 0 {
		return errors.New("no mutant was tried")
	}
	score := float64(tried-alive) / float64(tried)
	fmt.Printf("%d of %d killed: %.1f%%; %d more are equivalent\n", tried-alive, tried, 100*score, same)
	if score < wanted {
		return fmt.Errorf("%d survived, and %.0f%% must not", alive, 100*wanted)
	}
	return nil
}

// draw returns the n mutants whose hashes with the seed are the least, in the
// order of the code.
func draw(all []*mutant, n, seed int) []*mutant {
	rank := func(m *mutant) uint64 {
		h := fnv.New64a()
		fmt.Fprintf(h, "%s %d", m.key, seed)
		// FNV hardly moves the high bits for the last bytes.
		x := h.Sum64()
		x ^= x >> 33
		x *= 0xff51afd7ed558ccd
		return x ^ x>>33
	}
	chosen := slices.SortedFunc(slices.Values(all), func(a, b *mutant) int { return cmp.Compare(rank(a), rank(b)) })
	chosen = chosen[:min(n, len(chosen))]
	// One that holds another comes before it. Of a condition and its operator, which
	// have the same bytes, the condition does, since it was found first.
	slices.SortFunc(chosen, func(a, b *mutant) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to), cmp.Compare(a.order, b.order))
	})
	for i, m := range chosen {
		m.id = i + 1
	}
	return chosen
}

// readEquivalents returns the keys of a list in which lines with a key, and an
// indented line with the reason, take turns.
func readEquivalents(list string) (map[string]bool, error) {
	keys := map[string]bool{}
	var key string
	for line := range strings.Lines(list) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, "\t"):
			if key != "" {
				return nil, fmt.Errorf("equivalent.txt: %s: has no reason", key)
			}
			key = line
		case key == "":
			return nil, fmt.Errorf("equivalent.txt: %q: a reason of no mutant", line)
		default:
			keys[key], key = true, ""
		}
	}
	if key != "" {
		return nil, fmt.Errorf("equivalent.txt: %s: has no reason", key)
	}
	return keys, nil
}

// readVerdicts returns what a file says of mutants, by key; of none if there is no file.
func readVerdicts(name string) (map[string]string, error) {
	f, err := os.Open(name)
	if name == "" || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	verdicts := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, verdict, ok := strings.Cut(s.Text(), "\t"); ok {
			verdicts[key] = verdict
		}
	}
	return verdicts, nil
}

func writeVerdicts(name string, chosen []*mutant, verdicts map[string]string) error {
	if name == "" {
		return nil
	}
	var b strings.Builder
	for _, m := range chosen {
		if v := verdicts[m.key]; v != "" {
			fmt.Fprintf(&b, "%s\t%s\n", m.key, v)
		}
	}
	return os.WriteFile(name, []byte(b.String()), 0o644)
}
