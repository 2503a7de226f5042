package gotest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// edit is a change of a file of Go's own source. from must stand in it, count times.
type edit struct {
	file     string // below GOROOT/src
	from, to string
	count    int
}

// edits take chance out of what stands in a bubble: which of several ready cases a select
// takes, in which order a map is ranged over, what math/rand/v2 draws. Each does what Go may
// do anyway. The order of a map then follows from what was put into it and when; the choices
// of a select from how many its goroutine has made. So both are the same again in a
// program whose goroutines do the same.
var edits = []edit{
	{"internal/runtime/maps/map.go", "uintptr(rand())", "uintptr(1)", 4},
	{"internal/runtime/maps/table.go", "it.entryOffset = rand()", "it.entryOffset = 0", 1},
	{"internal/runtime/maps/table.go", "it.dirOffset = rand()", "it.dirOffset = 0", 1},
	// Keys of the hash functions, of which a process has one set.
	{"runtime/alg.go", "hashkey[i] = uintptr(bootstrapRand())", "hashkey[i] = uintptr(uint64(2*i+1) * 0x9e3779b97f4a7c15 >> 1)", 1},
	{"runtime/alg.go", "key[i] = bootstrapRand()", "key[i] = uint64(2*i+1) * 0x9e3779b97f4a7c15", 1},
	// A goroutine counts its choices: a select that always took the first case that is
	// ready could starve the others.
	{"runtime/runtime2.go", "\tbubble  *synctestBubble\n", "\tbubble  *synctestBubble\n\tchoices uint32\n", 1},
	{"runtime/proc.go", "\tnewg.startpc = fn.fn\n", "\tnewg.startpc = fn.fn\n\tnewg.choices = 0\n", 1},
	{"runtime/select.go", "\tnorder := 0\n", "\tnorder := 0\n\tchoice := getg()\n\tchoice.choices++\n", 1},
	{"runtime/select.go", "j := cheaprandn(uint32(norder + 1))",
		"j := cheaprandn(uint32(norder + 1))\n\t\tif choice.bubble != nil {\n\t\t\tj = uint32(uint64(choice.choices*0x9e3779b9^uint32(norder)*0x85ebca6b) * uint64(norder+1) >> 32)\n\t\t}", 1},
	// Compilers call it for maps that stay on the stack, packages sync and os by linkname.
	{"runtime/rand.go", "func rand() uint64 {\n", "func rand() uint64 {\n\tif gp := getg(); gp.bubble != nil {\n\t\tgp.choices++\n\t\tz := uint64(gp.choices) * 0x9e3779b97f4a7c15\n\t\tz = (z ^ z>>30) * 0xbf58476d1ce4e5b9\n\t\treturn z ^ z>>31\n\t}\n", 1},
	{"math/rand/v2/rand.go", "\treturn runtime_rand()\n", "\tz := drawn.Add(0x9e3779b97f4a7c15)\n\tz = (z ^ z>>30) * 0xbf58476d1ce4e5b9\n\tz = (z ^ z>>27) * 0x94d049bb133111eb\n\treturn z ^ z>>31\n", 1},
	{"math/rand/v2/rand.go", "type runtimeSource struct{}\n", "type runtimeSource struct{}\n\nvar drawn atomic.Uint64\n", 1},
	{"math/rand/v2/rand.go", "\t\"math/bits\"\n", "\t\"math/bits\"\n\t\"sync/atomic\"\n", 1},
}

// writeOverlay writes what go build's -overlay takes, and the changed files, into a
// directory, and returns the overlay's path. The error names what this version of Go
// doesn't have.
func writeOverlay(goroot, dir string) (string, error) {
	texts := map[string]string{}
	for _, e := range edits {
		text, ok := texts[e.file]
		if !ok {
			data, err := os.ReadFile(filepath.Join(goroot, "src", filepath.FromSlash(e.file)))
			if err != nil {
				return "", err
			}
			text = string(data)
		}
		if n := strings.Count(text, e.from); n != e.count {
			return "", fmt.Errorf("%s has %q %d times, want %d: the overlay is for another version of Go", e.file, e.from, n, e.count)
		}
		texts[e.file] = strings.ReplaceAll(text, e.from, e.to)
	}
	replace := map[string]string{}
	for file, text := range texts {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(goroot, "src", filepath.FromSlash(file))] = to
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, data, 0o600)
}
