package images

import (
	"slices"
	"testing"
)

// TestCatalogue reads every file: each can be decoded, is found by its name, and
// has files that there are.
func TestCatalogue(t *testing.T) {
	c := newCatalogue()
	trees := append(testTrees(), "", treeBusybox, treeAlpine, treeDebian, treePause, treePredefinedGroup)
	for i, k := range c.all() {
		if name := c.names[i]; c.find("docker.io/any/"+name) != k {
			t.Errorf("%s: not found by its name", name)
		}
		if !slices.Contains(trees, k.Tree) {
			t.Errorf("%s: no files %q", c.names[i], k.Tree)
		}
		if len(k.Entrypoint)+len(k.Cmd) == 0 {
			t.Errorf("%s: runs nothing", c.names[i])
		}
	}
	if k := c.find("quay.io/suite/hostnet-nginx-amd64"); k == nil || k.Server.Port != 12003 || k.Server.Root == "" {
		t.Errorf("what begins as a known image is %+v", k)
	}
	if k := c.find("docker.io/library/nobody-knows"); k != nil {
		t.Errorf("an image that nobody knows is %+v", k)
	}
}
