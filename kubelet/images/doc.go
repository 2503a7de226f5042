// Package images sees to it that a container's image is on the machine before
// the container is created: presence, pull policy, pull back-off, and how many
// pulls run at a time. It answers to upstream's pkg/kubelet/images.
//
// Verifying a pod's credentials for an image that is present has its place in
// [AccessChecker]; without one every pod may use every present image, which is
// also what upstream's default policy gives for images that no kubelet pulled.
package images
