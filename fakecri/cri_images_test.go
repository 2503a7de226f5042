package fakecri

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// These tests are what clients that verify a runtime expect of its images.

// socketOptions are those of a runtime behind a socket.
var socketOptions = Options{Interpret: true, ImagesByBaseName: true, SandboxImage: "registry.k8s.io/pause:3.10.1"}

const suite = "gcr.io/suite/"

func spec(name string) *runtimeapi.ImageSpec { return &runtimeapi.ImageSpec{Image: name} }

func (e *env) pull(name string) string {
	e.Helper()
	id, err := e.c.PullImage(e.ctx, spec(name), nil, nil)
	e.ok(err)
	return id
}

func (e *env) image(name string) *runtimeapi.Image {
	e.Helper()
	resp, err := e.c.ImageStatus(e.ctx, spec(name), false)
	e.ok(err)
	return resp.Image
}

func TestPulledNames(t *testing.T) {
	const digest = suite + "test-image-digest@sha256:9700f9a2f5bf2c45f2f605a0bd3bce7cf37420ec9d3ed50ac2758413308766bf"
	for _, tc := range []struct {
		name          string
		tags, digests []string // nil digests: one, of the repository
	}{
		{suite + "test-image-latest", []string{suite + "test-image-latest:latest"}, nil},
		{suite + "test-image-tag:test", []string{suite + "test-image-tag:test"}, nil},
		{digest, nil, []string{digest}},
		{strings.Replace(digest, "@", ":tag@", 1), nil, []string{digest}},
		{"busybox", []string{"docker.io/library/busybox:latest"}, nil},
		{"user/app:1", []string{"docker.io/user/app:1"}, nil},
		{"localhost:5000/app", []string{"localhost:5000/app:latest"}, nil},
	} {
		run(t, socketOptions, func(e *env) {
			id := e.pull(tc.name)
			im := e.image(tc.name)
			if im == nil || im.Id != id || im.Size == 0 || !slices.Equal(im.RepoTags, tc.tags) {
				t.Errorf("%s: %v", tc.name, im)
				return
			}
			if tc.digests != nil && !slices.Equal(im.RepoDigests, tc.digests) || len(im.RepoDigests) != 1 {
				t.Errorf("%s: digests %q", tc.name, im.RepoDigests)
			}
			names := slices.Concat(im.RepoTags, im.RepoDigests, []string{id, id[7:], id[:20], id[7:20]})
			for _, n := range names {
				if e.image(n) != im {
					t.Errorf("%s: the status by %s differs", tc.name, n)
				}
				if list, err := e.c.ListImages(e.ctx, &runtimeapi.ImageFilter{Image: spec(n)}); err != nil || len(list) != 1 || list[0] != im {
					t.Errorf("%s: the list by %s is %v, %v", tc.name, n, list, err)
				}
			}
			for _, n := range names {
				e.pull(tc.name)
				e.ok(e.c.RemoveImage(e.ctx, spec(n)))
				e.ok(e.c.RemoveImage(e.ctx, spec(n)))
				if e.image(id) != nil || e.image(tc.name) != nil {
					t.Errorf("%s: it is there after its removal by %s", tc.name, n)
				}
			}
		})
	}
}

func TestImageIdentity(t *testing.T) {
	for _, tc := range []struct {
		name  string
		opts  Options
		names []string
		want  string // the images by a letter
	}{
		{"different images", socketOptions, []string{suite + "test-image-1:latest", suite + "test-image-2:latest", suite + "test-image-3:latest"}, "ABC"},
		{"tags of one image", socketOptions, []string{suite + "test-image-tags:1", suite + "test-image-tags:2", suite + "test-image-tags:3"}, "AAA"},
		{"tags of different images", socketOptions, []string{"busybox:1", "busybox:2"}, "AB"},
		{"two registries", socketOptions, []string{"registry.k8s.io/a/busybox:1.29", "gcr.io/b/busybox:1.29", "busybox:1.29"}, "AAA"},
		{"two registries, apart", Options{}, []string{"registry.k8s.io/a/busybox:1.29", "gcr.io/b/busybox:1.29"}, "AB"},
		{"catalogue", Options{ImagesByBaseName: true, Images: []Image{{Name: "a.io/app:1", Aliases: []string{"b.io/other:2"}}, {Name: "c.io/app:1"}}},
			[]string{"a.io/app:1", "b.io/other:2", "c.io/app:1", "d.io/app:1"}, "AABA"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, tc.opts, func(e *env) {
				var ids []string
				got := ""
				for _, n := range tc.names {
					id := e.pull(n)
					if !slices.Contains(ids, id) {
						ids = append(ids, id)
					}
					got += string(rune('A' + slices.Index(ids, id)))
				}
				if got != tc.want {
					t.Errorf("images %s, want %s", got, tc.want)
				}
				for i, id := range ids {
					var names []string
					for k, n := range tc.names {
						if got[k] == byte('A'+i) {
							names = append(names, n)
						}
					}
					im := e.image(id)
					if len(im.RepoTags) != len(names) {
						t.Errorf("image %s has tags %q, want those of %q", id, im.RepoTags, names)
					}
					// By any name all go at once.
					e.ok(e.c.RemoveImage(e.ctx, spec(names[len(names)-1])))
					for _, n := range append(names, id) {
						if e.image(n) != nil {
							t.Errorf("%s is there after the removal", n)
						}
					}
				}
				list, err := e.c.ListImages(e.ctx, nil)
				e.ok(err)
				if tc.opts.SandboxImage != "" {
					if len(list) != 1 || !list[0].Pinned {
						t.Errorf("left: %v", list)
					}
				} else if len(list) != 0 {
					t.Errorf("left: %v", list)
				}
			})
		})
	}
}

func TestImageUsers(t *testing.T) {
	for _, tc := range []struct {
		image, user string
		uid         int64 // -1: none
		username    string
	}{
		{"a:1", "", -1, ""},
		{"a:1", "1002", 1002, ""},
		{"a:1", "1003:g", 1003, ""},
		{"a:1", "0", 0, ""},
		{"a:1", "www-data", -1, "www-data"},
		{"a:1", "www-data:g", -1, "www-data"},
		{suite + "test-image-user-uid", "", 1002, ""},
		{suite + "test-image-user-uid-group", "", 1003, ""},
		{suite + "test-image-user-username", "", -1, "www-data"},
		{suite + "test-image-user-username-group", "", -1, "www-data"},
		{suite + "test-image-predefined-group", "", 1000, ""},
	} {
		opts := socketOptions
		if tc.user != "" {
			opts.Images = []Image{{Name: tc.image, User: tc.user}}
		}
		run(t, opts, func(e *env) {
			e.pull(tc.image)
			im := e.image(tc.image)
			if tc.uid == -1 != (im.Uid == nil) || im.Uid.GetValue() != max(tc.uid, 0) || im.Username != tc.username {
				t.Errorf("%s of user %q: uid %v, username %q", tc.image, tc.user, im.Uid, im.Username)
			}
		})
	}
}

func TestConcurrentRemovals(t *testing.T) {
	run(t, socketOptions, func(e *env) {
		id := e.pull("busybox:1")
		var g loop.Event
		left := 5
		for i := range 5 {
			e.g.Go("remove", func(ctx context.Context) {
				if err := e.c.RemoveImage(ctx, spec(id)); err != nil {
					t.Errorf("removal %d: %v", i, err)
				}
				if resp, err := e.c.ImageStatus(ctx, spec(id), false); err != nil || resp.Image != nil {
					t.Errorf("removal %d: it is there: %v, %v", i, resp, err)
				}
				if left--; left == 0 {
					g.Fire()
				}
			})
		}
		e.ok(g.Wait(e.ctx))
	})
}

func TestPullErrors(t *testing.T) {
	opts := Options{Images: []Image{
		{Name: "private:1", Auth: &ImageAuth{Username: "u", Password: "p"}},
		{Name: "missing.example/*", Fail: &PullFailure{Code: "NotFound"}},
		{Name: "down-*:?", Fail: &PullFailure{Message: "RegistryUnavailable: try later", Times: 1}},
		{Name: "gone:1", Fail: &PullFailure{}},
	}}
	basic := &runtimeapi.AuthConfig{Auth: base64.StdEncoding.EncodeToString([]byte("u:p"))}
	for _, tc := range []struct {
		name string
		auth *runtimeapi.AuthConfig
		want codes.Code
		text string
	}{
		{"", nil, codes.InvalidArgument, "parse"},
		{"UPPER", nil, codes.InvalidArgument, "parse"},
		{"a b", nil, codes.InvalidArgument, "parse"},
		{strings.Repeat("a", 64), nil, codes.InvalidArgument, "parse"},
		{"a@sha256:12", nil, codes.InvalidArgument, "parse"},
		{"private:1", nil, codes.Unknown, "authorization failed"},
		{"private:1", &runtimeapi.AuthConfig{Username: "u", Password: "x"}, codes.Unknown, "authorization failed"},
		{"private:1", &runtimeapi.AuthConfig{Username: "u", Password: "p"}, codes.OK, ""},
		{"private:1", basic, codes.OK, ""},
		{"private:1", &runtimeapi.AuthConfig{Auth: "%"}, codes.Unknown, "authorization failed"},
		{"missing.example/a/b:1", nil, codes.NotFound, "not found"},
		{"down-1:2", nil, codes.Unknown, "RegistryUnavailable"},
		{"gone:1", nil, codes.Unknown, "not found"},
		{"anything:1", nil, codes.OK, ""},
	} {
		run(t, opts, func(e *env) {
			ref, err := e.c.PullImage(e.ctx, spec(tc.name), tc.auth, &runtimeapi.PodSandboxConfig{})
			e.code(err, tc.want)
			if (ref == "") != (err != nil) || err != nil && !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%q: %q, %v", tc.name, ref, err)
			}
		})
	}
	run(t, opts, func(e *env) {
		ctx, cancel := loop.WithTimeout(e.ctx, time.Millisecond)
		defer cancel()
		ref, err := e.c.PullImage(ctx, spec("anything:1"), nil, nil)
		e.code(err, codes.DeadlineExceeded)
		if ref != "" || e.image("anything:1") != nil {
			t.Errorf("a pull that timed out left %q", ref)
		}
		_, err = e.c.PullImage(e.ctx, spec("down-1:2"), nil, nil)
		e.code(err, codes.Unknown)
		e.pull("down-1:2")
		_, err = e.c.PullImage(e.ctx, spec("down-2:2"), nil, nil) // it has a count of its own
		e.code(err, codes.Unknown)
		if e.pull("down-2:2") == e.pull("down-1:2") {
			t.Error("images of one pattern are one image")
		}
	})
	if err := (Options{Images: []Image{{Name: "a*", Present: true}}}).Validate(); err == nil || !strings.Contains(err.Error(), "pattern") {
		t.Errorf("a pattern that is present: %v", err)
	}
	if err := (Options{SandboxImage: "A"}).Validate(); err == nil || !strings.Contains(err.Error(), "sandboxImage") {
		t.Errorf("sandbox image: %v", err)
	}
}

func TestPinnedImages(t *testing.T) {
	opts := socketOptions
	opts.Images = []Image{{Name: "kept:1", Present: true, Pinned: true, Annotations: map[string]string{"a": "b"}}, {Name: "other:1", Present: true}}
	run(t, opts, func(e *env) {
		for name, pinned := range map[string]bool{opts.SandboxImage: true, "kept:1": true, "other:1": false} {
			im := e.image(name)
			if im == nil || im.Pinned != pinned || im.Spec == nil || (im.Spec.Annotations["a"] == "b") != (name == "kept:1") {
				t.Errorf("%s: %v", name, im)
			}
			e.ok(e.c.RemoveImage(e.ctx, spec(name)))
			if e.image(name) != nil {
				t.Errorf("%s can't be removed", name)
			}
		}
		e.pull(opts.SandboxImage)
		if !e.image(opts.SandboxImage).Pinned {
			t.Error("pulled again it is not pinned")
		}
	})
}

// The identifiers of one image are the same wherever it shows.
func TestImageIdentityOfContainers(t *testing.T) {
	run(t, socketOptions, func(e *env) {
		id := e.pull("a.io/x/busybox:1")
		if e.pull("b.io/y/busybox:1") != id {
			t.Error("another id from another registry")
		}
		sb := e.sandbox("web", 0)
		for i, name := range []string{id, id[7:], id[7:19], "a.io/x/busybox:1", "b.io/y/busybox:1", e.image(id).RepoDigests[1]} {
			cfg := containerConfig("web", fmt.Sprint("c", i), 2)
			cfg.Image = &runtimeapi.ImageSpec{Image: name, UserSpecifiedImage: "b.io/y/busybox:1"}
			cid, err := e.c.CreateContainer(e.ctx, sb, cfg, podConfig("web", 0))
			e.ok(err)
			st := e.status(cid)
			list, err := e.c.ListContainers(e.ctx, &runtimeapi.ContainerFilter{Id: cid})
			e.ok(err)
			if st.ImageId != id || len(list) != 1 || list[0].ImageId != id || st.Image.GetImage() == "" || !strings.Contains(st.ImageRef, "@sha256:") || list[0].ImageRef != st.ImageRef {
				t.Errorf("made of %s: %v, %v", name, st, list)
			}
		}
	})
}

func TestImageFilesystems(t *testing.T) {
	opts := socketOptions
	opts.ImageFilesystem = "/srv/images"
	run(t, opts, func(e *env) {
		before, err := e.c.ImageFsInfo(e.ctx)
		e.ok(err)
		e.pull("busybox")
		info, err := e.c.ImageFsInfo(e.ctx)
		e.ok(err)
		for _, fs := range slices.Concat(info.ImageFilesystems, info.ContainerFilesystems) {
			if fs.Timestamp == 0 || fs.FsId.GetMountpoint() != "/srv/images" || fs.UsedBytes == nil || fs.InodesUsed == nil {
				t.Errorf("file system %v", fs)
			}
		}
		if len(info.ContainerFilesystems) != 1 || info.ImageFilesystems[0].UsedBytes.Value <= before.ImageFilesystems[0].UsedBytes.Value {
			t.Errorf("%v after %v", info, before)
		}
	})
}

func TestImageInfo(t *testing.T) {
	run(t, socketOptions, func(e *env) {
		e.pull("nginx:1.14-2")
		resp, err := e.c.ImageStatus(e.ctx, spec("nginx:1.14-2"), true)
		e.ok(err)
		var info struct {
			ImageSpec struct {
				Config struct {
					Cmd, Env   []string
					StopSignal string
				}
			}
		}
		if err := json.Unmarshal([]byte(resp.Info["info"]), &info); err != nil || len(info.ImageSpec.Config.Cmd) == 0 || info.ImageSpec.Config.StopSignal != "SIGQUIT" {
			t.Errorf("info %s: %v", resp.Info["info"], err)
		}
		resp, err = e.c.ImageStatus(e.ctx, spec("nginx:1.14-2"), false)
		e.ok(err)
		if resp.Info != nil {
			t.Error("info without verbose")
		}
		resp, err = e.c.ImageStatus(e.ctx, spec("none"), true)
		e.ok(err)
		if resp.Image != nil {
			t.Error("an image that is not there")
		}
	})
}
