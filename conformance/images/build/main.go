// Command build builds the test program for the architectures that images are
// made for, as go generate does: build DIR [ARCH]...
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drydock-sim/drydock/conformance/images"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "build: name the directory to build into")
		os.Exit(2)
	}
	archs := os.Args[2:]
	if len(archs) == 0 {
		archs = images.Architectures()
	}
	for _, arch := range archs {
		if err := images.Pack(context.Background(), arch, filepath.Join(os.Args[1], images.ProgramFile(arch))); err != nil {
			fmt.Fprintln(os.Stderr, "build:", err)
			os.Exit(1)
		}
	}
}
