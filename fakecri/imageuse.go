package fakecri

import "slices"

// ImageUseGeneration is StatusGeneration for what garbage collection of images
// asks: which images there are, and which containers have or mount them, dead or
// alive. The use of the file system is no part of it.
func (c *Client) ImageUseGeneration() uint64 {
	for _, m := range [...]method{mListImages, mListPodSandbox, mListContainers, mContainerStatus, mImageFsInfo} {
		if !c.r.calls.prompt(m) {
			return 0
		}
	}
	return c.r.images.gen + c.r.recs.containerGen
}

// MountedImages returns the ids of the images that a container mounts, as its
// status says. ok is false if that has to be asked for, as when a call would
// take time, or fail.
func (c *Client) MountedImages(containerID string) (ids []string, ok bool) {
	ctr, _ := c.r.recs.lookupContainer(containerID)
	if ctr == nil || c.by.g.Dead() || !c.r.calls.prompt(mContainerStatus) {
		return nil, false
	}
	for _, m := range ctr.config.Mounts {
		if id := m.GetImage().GetImage(); id != "" {
			ids = append(ids, id)
		}
	}
	return ids, true
}

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
	out := make([]ImageInfo, 0, len(r.images.images))
	for _, im := range r.images.images {
		names := slices.Clone(im.tags)
		if len(names) == 0 {
			names = []string{im.ref}
		}
		out = append(out, ImageInfo{ID: im.id, Names: names, Size: im.source.Size, Pinned: im.source.Pinned})
	}
	return out
}
