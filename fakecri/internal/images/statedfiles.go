package images

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// This file adds what a catalogue states of an image's files to those that are known of it.

// filesPrefix begins the names of trees with stated files, onlyFilesPrefix of those that have
// nothing else.
const (
	filesPrefix     = "files\x00"
	onlyFilesPrefix = "only\x00"
)

// checkFiles refuses what is no file's path.
func (im Image) checkFiles() error {
	names := slices.Sorted(maps.Keys(im.Files)) //drydock:unordered sorted
	for i, name := range names {
		switch {
		case !path.IsAbs(name) || path.Clean(name) != name || name == "/":
			return fmt.Errorf("files: %q is no absolute path of a file", name)
		case slices.ContainsFunc(names[i+1:], func(n string) bool { return strings.HasPrefix(n, name+"/") }):
			return fmt.Errorf("files: %q is a directory of another", name)
		}
	}
	if len(names) > 0 && im.pattern() {
		return fmt.Errorf("files: %q is a pattern, which has none", im.Name)
	}
	return nil
}

// TreeOf returns the files of an image, as its containers see them.
func (r *Store) TreeOf(src *Source) *memfs.Image { return r.AllTrees().of(r.l, src) }

// VolumeOf returns the files of an image, as an image volume shows them: of an image of which only
// files are stated these, since it need not be one of a system.
func (r *Store) VolumeOf(src *Source) *memfs.Image { return r.AllTrees().volumeOf(r.l, src) }

// VolumeKnown reports whether what an image volume shows is more than a guess.
func (src *Source) VolumeKnown() bool { return src.FilesKnown() || len(src.Files) > 0 }

func (t *Trees) of(l *loop.Loop, src *Source) *memfs.Image {
	base := t.Tree(l, src.Tree(), src.Commands)
	if len(src.Files) == 0 {
		return base
	}
	return t.with(l, filesPrefix+src.Tree(), base, src.Files)
}

func (t *Trees) volumeOf(l *loop.Loop, src *Source) *memfs.Image {
	if src.FilesKnown() || len(src.Files) == 0 {
		return t.of(l, src)
	}
	return t.with(l, onlyFilesPrefix, memfs.New(memfs.Options{Loop: l, Tmpfs: []string{}}).Freeze(), src.Files)
}

// with returns a tree with more files, and makes it if it is not there; the name is that of what
// it is made of.
func (t *Trees) with(l *loop.Loop, name string, base *memfs.Image, files map[string]string) *memfs.Image {
	names := slices.Sorted(maps.Keys(files)) //drydock:unordered sorted
	for _, n := range names {
		name += "\x00" + n + "\x00" + files[n]
	}
	name = Hash("tree", name)
	if im := t.images[name]; im != nil {
		return im
	}
	f := memfs.NewFrom(memfs.Options{Loop: l, Tmpfs: []string{}}, base)
	for _, n := range names {
		err := f.MkdirAll(path.Dir(n), 0o755)
		if err == nil {
			err = f.WriteFile(n, []byte(files[n]), 0o644)
		}
		if err != nil {
			panic("fakecri: an image's files: " + err.Error())
		}
	}
	t.images[name] = f.Freeze()
	return t.images[name]
}

// prepareFiles makes the trees of an image with stated files, so that nodes share them.
func (t *Trees) prepareFiles(l *loop.Loop, im Image) {
	if c, err := Canonical(im.Name); err == nil && len(im.Files) > 0 {
		src := &Source{Image: im, Known: t.catalogue.find(repository(c.String()))}
		src.adopt(src.Known)
		src.adoptTest(c.String())
		t.of(l, src)
		t.volumeOf(l, src)
	}
}
