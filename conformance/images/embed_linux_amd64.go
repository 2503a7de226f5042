package images

import "embed"

// bin has a README always, and the test program where it was built.
//
//go:embed bin/amd64
var bin embed.FS
