package scenarios

import (
	_ "embed"
	"strconv"
	"strings"
)

//go:embed starter.yaml
var starter string

//go:embed starter_apply.yaml
var starterApply string

// Starter returns the text of a commented scenario to start from, as `drydock
// init` writes it.
func Starter() string { return starter }

// StarterFor returns the text of a scenario that applies a file of manifests, or a directory of
// them, and wants its workloads ready, as `drydock init --apply` writes it. The file is relative to
// the scenario's.
func StarterFor(manifests string) string {
	return strings.Replace(starterApply, "{file: FILE}", "{file: "+strconv.Quote(manifests)+"}", 1)
}
