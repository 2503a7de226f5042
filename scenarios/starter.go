package scenarios

import _ "embed"

//go:embed starter.yaml
var starter string

// Starter returns the text of a commented scenario to start from, as `drydock
// init` writes it.
func Starter() string { return starter }
