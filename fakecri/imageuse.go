package fakecri

import (
	"slices"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
)

// ImageUseGeneration is StatusGeneration for what garbage collection of images
// asks: which images there are, and which containers have or mount them, dead or
// alive. The use of the file system is no part of it.
func (c *Client) ImageUseGeneration() uint64 {
	for _, m := range [...]calls.Method{calls.ListImages, calls.ListPodSandbox, calls.ListContainers, calls.ContainerStatus, calls.ImageFsInfo} {
		if !c.r.calls.Prompt(m) {
			return 0
		}
	}
	return c.r.images.Gen + c.r.recs.ContainerGen
}

// MountedImages returns the ids of the images that a container mounts, as its
// status says. ok is false if that has to be asked for, as when a call would
// take time, or fail.
func (c *Client) MountedImages(containerID string) (ids []string, ok bool) {
	ctr, _ := c.r.recs.LookupContainer(containerID)
	if ctr == nil || c.by.Group.Dead() || !c.r.calls.Prompt(calls.ContainerStatus) {
		return nil, false
	}
	for _, m := range ctr.Config.Mounts {
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
