package fakecri

import "slices"

// ImageInfo is an image as [Runtime.PresentImages] tells of it.
type ImageInfo struct {
	ID string
	// Names are its tags in full, in the order in which it got them; a digested
	// reference if it has none.
	Names  []string
	Size   int64 // bytes
	Pinned bool
}

// PresentImages tells of every image that is present, in order of arrival. It is no
// call and takes no time.
func (r *Runtime) PresentImages() []ImageInfo {
	out := make([]ImageInfo, 0, len(r.images.Images))
	for _, im := range r.images.Images {
		names := slices.Clone(im.Tags)
		if len(names) == 0 {
			names = []string{im.Ref}
		}
		out = append(out, ImageInfo{ID: im.ID, Names: names, Size: im.Source.Size, Pinned: im.Source.Pinned})
	}
	return out
}
