package images

import (
	"strings"
	"testing"

	"github.com/drydock-sim/drydock/ground/memfs"
)

// TestCheckFiles: paths of files, none within another, and of one image.
func TestCheckFiles(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files []string
		want  string
	}{
		{"app:1", []string{"/a", "/b/c", "/bc"}, ""},
		{"app:1", []string{"a"}, "no absolute path"},
		{"app:1", []string{"/a/../b"}, "no absolute path"},
		{"app:1", []string{"/"}, "no absolute path"},
		{"app:1", []string{"/b", "/b/c"}, `"/b" is a directory of another`},
		{"app:*", []string{"/a"}, "is a pattern"},
		{"app:*", nil, ""},
	} {
		im := Image{Name: tt.name, Files: map[string]string{}}
		for _, f := range tt.files {
			im.Files[f] = f
		}
		switch err := im.Validate(); {
		case tt.want == "" && err != nil:
			t.Errorf("%v: %v", tt.files, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%v: %v, want %q", tt.files, err, tt.want)
		}
	}
}

// TestStatedFiles: a container sees stated files beside those of its system, a volume those alone
// of an image of which nothing else is known, and nodes share what is made of them.
func TestStatedFiles(t *testing.T) {
	images := []Image{
		{Name: "model:1", Files: map[string]string{"/weights/a": "1"}},
		{Name: "busybox:1.36", Files: map[string]string{"/etc/motd": "hello"}},
	}
	trees := NewTrees()
	trees.prepare(nil, images)
	made := len(trees.images)
	for _, tt := range []struct {
		im                       Image
		container, volume, isNot string
	}{
		{images[0], "/bin/sh", "/weights/a", "/bin/sh"},
		{images[1], "/etc/motd", "/etc/motd", ""},
		{images[1], "/bin/sh", "/bin/sh", ""},
	} {
		src := &Source{Image: tt.im, Known: trees.catalogue.find("docker.io/library/" + strings.SplitN(tt.im.Name, ":", 2)[0])}
		container := memfs.NewFrom(memfs.Options{}, trees.of(nil, src))
		volume := memfs.NewFrom(memfs.Options{}, trees.volumeOf(nil, src))
		for _, see := range []struct {
			fs   *memfs.FS
			file string
			has  bool
		}{{container, tt.container, true}, {volume, tt.volume, true}, {volume, tt.isNot, tt.isNot == ""}} {
			if _, err := see.fs.Stat(see.file); see.file != "" && (err == nil) != see.has {
				t.Errorf("%s: %s: %v", tt.im.Name, see.file, err)
			}
		}
	}
	if len(trees.images) != made {
		t.Errorf("%d trees were made of images that were there from the start", len(trees.images)-made)
	}
}
