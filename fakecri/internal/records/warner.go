package records

import (
	"cmp"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// WarnScript warns of a script for which there is no shell.
func (r *Warner) WarnScript(c *Container, argv []string) {
	r.WarnOnce(c, argv[2], fmt.Sprintf("the script %q is not run and no program is stated for it; it runs until it is stopped and exits 0 on SIGTERM", Shorten(argv[2], 60)))
}

// WarnOnce warns of something about a container, once per image and key.
func (r *Warner) WarnOnce(c *Container, key, text string) {
	if r.To == nil {
		return
	}
	image := c.ImageName()
	key = image + "\x00" + key
	if r.warned[key] {
		return
	}
	if r.warned == nil {
		r.warned = map[string]bool{}
	}
	r.warned[key] = true
	md := c.Sandbox.Metadata
	if r.OfPod != nil {
		r.OfPod(md, c.Config.Metadata.Name, image, text)
		return
	}
	r.warn("container %s of pod %s/%s, image %s: %s", c.Config.Metadata.Name, md.Namespace, md.Name, image, text)
}

// ImageName is the container's image as its pod names it.
func (c *Container) ImageName() string {
	return cmp.Or(c.Config.Image.GetUserSpecifiedImage(), c.Config.Image.GetImage())
}

// Shorten cuts a text to n bytes, for a sentence.
func Shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "..."
}

// warn says a sentence, if anybody listens.
func (r *Warner) warn(format string, args ...any) {
	if r.To != nil {
		r.To(fmt.Sprintf(format, args...))
	}
}

// Warner says what is not acted on, once of each image.
type Warner struct {
	To     func(string)                                                            // nil: nobody wants to know
	OfPod  func(pod *runtimeapi.PodSandboxMetadata, container, image, text string) // in To's place; may be nil
	warned map[string]bool
}
