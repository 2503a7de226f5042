package fakecri

import (
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

// mountsShown are the mounts as statuses show them: as in the request, with the
// id of an image volume's image.
func (r *viewer) mountsShown(c *records.Container) []*runtimeapi.Mount {
	mounts := c.Config.Mounts
	for i, m := range c.Config.Mounts {
		if m.GetImage() == nil {
			continue
		}
		if &mounts[0] == &c.Config.Mounts[0] {
			mounts = append([]*runtimeapi.Mount(nil), mounts...)
		}
		ref := m.Image.Image
		if im := r.images.Find(ref); im != nil {
			ref = im.ID
		}
		mounts[i] = &runtimeapi.Mount{
			ContainerPath: m.ContainerPath, HostPath: m.HostPath, Readonly: m.Readonly, SelinuxRelabel: m.SelinuxRelabel,
			Propagation: m.Propagation, UidMappings: m.UidMappings, GidMappings: m.GidMappings, RecursiveReadOnly: m.RecursiveReadOnly,
			Image: &runtimeapi.ImageSpec{
				Image: m.Image.Image, Annotations: m.Image.Annotations, UserSpecifiedImage: m.Image.UserSpecifiedImage,
				RuntimeHandler: m.Image.RuntimeHandler, ImageRef: ref,
			},
			ImageSubPath: m.ImageSubPath,
		}
	}
	return mounts
}
