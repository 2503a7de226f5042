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
	first := runtime(app).images.Find("app:1")
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
		got := r.images.Find("app:1")
		if (got.Entry == first.Entry) != tc.shared || (got.Spec == first.Spec) != tc.shared {
			t.Errorf("%s: shared %v", tc.name, got.Entry == first.Entry)
		}
		if got.Entry.Size != uint64(im.Size) || got.Entry.Pinned != im.Pinned || len(got.Entry.RepoTags) != 1+len(im.Aliases) || got.Entry.Spec.Annotations["a"] != im.Annotations["a"] {
			t.Errorf("%s: %v", tc.name, got.Entry)
		}
		if unsafe.StringData(got.ID) != unsafe.StringData(first.ID) {
			t.Errorf("%s: the id has a copy of its own", tc.name)
		}
	}
	other := runtime(app)
	texts := len(trees.Table.Texts)
	other.images.Add(other.images.Find("app:1").Source, "docker.io/library/app:3")
	if got := other.images.Find("app:1").Entry.RepoTags; len(got) != 2 || len(first.Entry.RepoTags) != 1 {
		t.Errorf("tags %v, of another runtime %v", got, first.Entry.RepoTags)
	}
	if len(trees.Table.Texts) != texts {
		t.Error("a runtime that may run writes to what others share")
	}
}
