// Package images sees to it that a container's image is on the machine before
// the container is created: presence, pull policy, pull back-off, and how many
// pulls run at a time. It mirrors upstream's pkg/kubelet/images.
//
// Whether a pod may use an image that is present is for a [PullManager] to say;
// without one every pod may use every image.
package images
