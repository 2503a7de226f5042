package fakecri

import (
	"slices"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestImageUseGeneration: it grows with images and records of containers only.
func TestImageUseGeneration(t *testing.T) {
	run(t, Options{Images: []Image{appImage, {Name: "app:2"}}}, func(e *env) {
		last := e.c.ImageUseGeneration()
		if last == 0 {
			e.Fatal("it cannot tell")
		}
		step := func(what string, grows bool, do func()) {
			e.Helper()
			do()
			now := e.c.ImageUseGeneration()
			if now != last != grows {
				e.Errorf("%s: from %d to %d", what, last, now)
			}
			last = now
		}
		second := &runtimeapi.ImageSpec{Image: "app:2"}
		var box, id string
		step("sandbox", false, func() { box = e.sandbox("p", 0) })
		step("container", true, func() { id = e.create(box, "p", "main", 0) })
		step("start", false, func() { e.ok(e.c.StartContainer(e.ctx, id)) })
		step("stop", false, func() { e.ok(e.c.StopContainer(e.ctx, id, 0)) })
		step("removal", true, func() { e.ok(e.c.RemoveContainer(e.ctx, id)) })
		step("pull", true, func() {
			_, err := e.c.PullImage(e.ctx, second, nil, nil)
			e.ok(err)
		})
		if got := e.rt.PresentImages(); len(got) != 2 || !slices.Equal(got[1].Names, []string{"docker.io/library/app:2"}) {
			e.Errorf("images: %+v", got)
		}
		step("removal of an image", true, func() { e.ok(e.c.RemoveImage(e.ctx, second)) })
		e.rt.StopDaemon()
		if now := e.c.ImageUseGeneration(); now != 0 {
			e.Errorf("with the daemon down it tells %d", now)
		}
	})
}
