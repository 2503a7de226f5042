package fakecri

import (
	"testing"
	"unsafe"

	"github.com/drydock-sim/drydock/ground/loop"
)

// TestSharedImages: runtimes with the same Trees have one copy of what is said of
// equal images; what differs is told apart, and what changes later is each
// runtime's own.
func TestSharedImages(t *testing.T) {
	trees := NewTrees()
	runtime := func(images ...Image) *Runtime {
		l := loop.New(loop.Options{Name: "n"})
		t.Cleanup(l.Close)
		return New(Options{Loop: l, Trees: trees, Images: images})
	}
	app := Image{Name: "app:1", Present: true, Size: 10}
	first := runtime(app).images.find("app:1")
	for _, tc := range []struct {
		name   string
		edit   func(im *Image)
		shared bool
	}{
		{"same", func(*Image) {}, true},
		{"size", func(im *Image) { im.Size = 11 }, false},
		{"pinned", func(im *Image) { im.Pinned = true }, false},
		{"user", func(im *Image) { im.User = "nobody" }, false},
		{"uid", func(im *Image) { im.User = "0" }, false},
		{"alias", func(im *Image) { im.Aliases = []string{"app:2"} }, false},
		{"annotations", func(im *Image) { im.Annotations = map[string]string{"a": "b"} }, false},
	} {
		im := app
		tc.edit(&im)
		r := runtime(im)
		got := r.images.find("app:1")
		if (got.entry == first.entry) != tc.shared || (got.spec == first.spec) != tc.shared {
			t.Errorf("%s: shared %v", tc.name, got.entry == first.entry)
		}
		if got.entry.Size != uint64(im.Size) || got.entry.Pinned != im.Pinned || len(got.entry.RepoTags) != 1+len(im.Aliases) || got.entry.Spec.Annotations["a"] != im.Annotations["a"] {
			t.Errorf("%s: %v", tc.name, got.entry)
		}
		if unsafe.StringData(got.id) != unsafe.StringData(first.id) {
			t.Errorf("%s: the id has a copy of its own", tc.name)
		}
	}
	other := runtime(app)
	texts := len(trees.table.texts)
	other.images.add(other.images.find("app:1").source, "docker.io/library/app:3")
	if got := other.images.find("app:1").entry.RepoTags; len(got) != 2 || len(first.entry.RepoTags) != 1 {
		t.Errorf("tags %v, of another runtime %v", got, first.entry.RepoTags)
	}
	if len(trees.table.texts) != texts {
		t.Error("a runtime that may run writes to what others share")
	}
}
