package parity

import (
	"slices"
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/fakecri"
)

// TestCommands wants the commands of the recorded image to be built.
func TestCommands(t *testing.T) {
	all := append(fakecri.DebianApplets(), "sh")
	for _, name := range strings.Fields(small) {
		if !slices.Contains(all, name) {
			t.Errorf("%s is not built", name)
		}
	}
}
