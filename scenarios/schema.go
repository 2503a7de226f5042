package scenarios

import (
	"bytes"
	_ "embed"
)

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of the scenario document. It
// is generated from the document's types; see the package comment.
func Schema() []byte { return bytes.Clone(schema) }
