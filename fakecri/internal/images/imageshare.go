package images

import (
	"maps"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// imageTable has what runtimes say of images that are present from the start: all
// that share it have one copy. Only New writes to it.
type imageTable struct {
	Texts map[string]string
	shown map[string][]shownImage // by id
}

// shownImage is what describe makes of an image, and never changes.
type shownImage struct {
	tags, digests []string
	spec          *runtimeapi.ImageSpec
	ref           string
	entry         *runtimeapi.Image
}

// newImageTable returns an empty table.
func newImageTable() *imageTable {
	return &imageTable{Texts: map[string]string{}, shown: map[string][]shownImage{}}
}

// text returns the one copy of a text; without a table the text itself.
func (t *imageTable) text(s string) string {
	if t == nil {
		return s
	}
	if have, ok := t.Texts[s]; ok {
		return have
	}
	t.Texts[s] = s
	return s
}

// share replaces what is shown of an image by what is shown of an equal one.
func (t *imageTable) share(im *Present) {
	if t == nil {
		return
	}
	for _, o := range t.shown[im.ID] {
		if slices.Equal(o.tags, im.Tags) && slices.Equal(o.digests, im.digests) && sameShown(o.entry, im.Entry) {
			im.Tags, im.digests, im.Spec, im.Ref, im.Entry = o.tags, o.digests, o.spec, o.ref, o.entry
			return
		}
	}
	t.shown[im.ID] = append(t.shown[im.ID], shownImage{im.Tags, im.digests, im.Spec, im.Ref, im.Entry})
}

// sameShown compares what entries of listings say beside id, tags and digests.
func sameShown(a, b *runtimeapi.Image) bool {
	return a.Size == b.Size && a.Pinned == b.Pinned && a.Username == b.Username &&
		(a.Uid == nil) == (b.Uid == nil) && a.GetUid().GetValue() == b.GetUid().GetValue() &&
		maps.Equal(a.Spec.Annotations, b.Spec.Annotations)
}
