//go:build !linux || (!amd64 && !arm64)

package images

import "embed"

// bin is empty: conformance checks run on Linux.
var bin embed.FS
