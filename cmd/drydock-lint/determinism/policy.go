package determinism

import (
	"slices"
	"strings"
)

// module is the path of the module whose packages are judged.
const module = "github.com/drydock-sim/drydock"

// relative returns the package's path within the module.
func relative(path string) (string, bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

// under reports whether pkg is the package dir or below it.
func under(pkg, dir string) bool {
	return pkg == dir || strings.HasPrefix(pkg, dir+"/")
}

// The tables of this file are the module's plan; docs/architecture/rooms.md tells
// it in words.

// floors, highest first. A package stands on the floor whose directory is the
// longest that holds it, and imports its own floor and lower ones only.
var floors = []string{
	"hack",
	"docs",
	"cmd",
	"conformance",
	"drydocktest",
	"up",
	"scale",
	"scenarios",
	"sim",
	"sim/controlplane",
	"sim/apiserver",
	"sim/internal",
	"kubelet",
	"fakecri",
	"ground/memfs",
	"ground/usage",
	"ground/trace",
	"ground/loop",
	"ground/hugepages",
	"ground/lists",
	"ground/paths",
	"ground/linux",
}

// floorOf returns the index in floors of the floor that pkg stands on.
func floorOf(pkg string) (int, bool) {
	best := -1
	for i, dir := range floors {
		if under(pkg, dir) && (best < 0 || len(dir) > len(floors[best])) {
			best = i
		}
	}
	return best, best >= 0
}

// strangers are neighbours that meet through interfaces only, though the order
// of the floors would let them import each other. A kubelet that knew fakecri could
// not run on a machine; an API that knew it would see what no API sees.
var strangers = []struct{ from, to string }{
	{"kubelet", "fakecri"},
	{"kubelet", "ground/memfs"},
	{"sim/apiserver", "fakecri"},
}

// edge is where Drydock touches the machine it runs on.
type edge struct {
	// dir is a package and those below it.
	dir string
	// files, if any, are the only files of the package dir that are an edge.
	files []string
	// exempt is what is allowed there.
	exempt class
	// sealed keeps deterministic packages from importing it.
	sealed bool
}

// edges are all places where anything is exempt. Those that are not sealed are
// imported by deterministic packages, and so small that a reader can check them.
var edges = []edge{
	// Commands, tools and the tests of documents stand outside of every run.
	{dir: "cmd", exempt: everything, sealed: true},
	{dir: "hack", exempt: everything, sealed: true},
	{dir: "docs", exempt: everything, sealed: true},
	// The ground: the real driver, the engine's workers and watchdog.
	{dir: "ground/loop", exempt: concurrency | clock | contexts | machine},
	{dir: "ground/hugepages", exempt: concurrency | clock | contexts | machine},
	// Scenario files are read from disk.
	{dir: "scenarios", files: []string{"load.go", "loadpaths.go"}, exempt: machine},
	// What stands between a loop and sockets, files and clients of the machine.
	{dir: "fakecri/server", exempt: everything, sealed: true},
	{dir: "kubelet/internal/server", exempt: everything, sealed: true},
	{dir: "fakecri/fakecritest", exempt: everything, sealed: true},
	{dir: "kubelet/internal/clientgo", exempt: everything, sealed: true},
	{dir: "kubelet/internal/certificate", exempt: everything, sealed: true},
	{dir: "kubelet/app", exempt: everything, sealed: true},
	// The API's door for clients over HTTP.
	{dir: "sim/facade", exempt: everything, sealed: true},
	// What the kubelet's boundaries are on a real machine.
	{dir: "kubelet/real", exempt: everything, sealed: true},
	{dir: "conformance", exempt: everything, sealed: true},
	// Clusters that clients reach.
	{dir: "up", exempt: everything, sealed: true},
	// Clusters in bubbles, and the tests' goroutines.
	{dir: "drydocktest", exempt: everything, sealed: true},
}

// exemption returns what a file may do that a deterministic one may not.
func exemption(pkg, file string) class {
	var out class
	for _, e := range edges {
		if len(e.files) == 0 {
			if under(pkg, e.dir) {
				out |= e.exempt
			}
			continue
		}
		for _, f := range e.files {
			if pkg == e.dir && f == file {
				out |= e.exempt
			}
		}
	}
	return out
}

// isSealed reports whether only edges may import pkg.
func isSealed(pkg string) bool {
	return slices.ContainsFunc(edges, func(e edge) bool { return e.sealed && under(pkg, e.dir) })
}
