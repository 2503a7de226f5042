//go:build linux

package conformance

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/actor"
	"github.com/drydock-sim/drydock/ground/lists"
)

// imageChecks are about images. Those that remove some run alone: the same image
// has the same id under every name. Each works in a repository of its own below the registry, so
// that tags don't meet.
func imageChecks() []*check {
	return []*check{
		{name: "cri/image/absent", level: Required, run: checkImageAbsent,
			expect: "ImageStatus of an image that is not there succeeds with no image, and RemoveImage of it succeeds."},
		{name: "cri/image/pull-tag", level: Required, alone: true, run: checkPullTag,
			expect: "An image that was pulled by tag has that tag, a digest of its repository, an id and a size, in the status by tag and by id and in lists; a second pull gives the same id."},
		{name: "cri/image/pull-digest", level: Required, alone: true, run: checkPullDigest,
			expect: "An image that was pulled by digest has no tag and just that digest."},
		{name: "cri/image/pull-latest", level: Required, alone: true, run: checkPullLatest,
			expect: "A name without a tag means the tag latest, for pulls, statuses and removals."},
		{name: "cri/image/pull-missing", level: Required, run: checkPullMissing,
			expect: "PullImage of what the registry does not have fails, and leaves nothing."},
		{name: "cri/image/pull-deadline", level: Required, run: checkPullDeadline,
			expect: "PullImage ends with its caller's deadline, and leaves no image."},
		{name: "cri/image/pull-credentials", level: Required, run: checkPullCredentials,
			expect: "PullImage uses the credentials that it is given: with them a private image is pulled, without them it is not."},
		{name: "cri/image/identity", level: Required, alone: true, run: checkImageIdentity,
			expect: "One image under two tags and two repositories is one image with one id and all the names; different images have different ids; the id is what PullImage returned."},
		{name: "cri/image/remove", level: Required, alone: true, run: checkImageRemove,
			expect: "RemoveImage, by a tag or by id, takes away the image with all its names by the time it returns; a second removal succeeds."},
		{name: "cri/image/remove-at-once", level: Required, alone: true, run: checkImageRemoveConcurrent,
			expect: "Several removals of an image at the same time all succeed, and each caller sees it gone afterwards."},
		{name: "cri/image/list-filter", level: Optional, run: checkImageFilter,
			expect: "ListImages honours a filter by name (kubelets don't use it)."},
		{name: "cri/image/user", level: Required, run: checkImageUser,
			expect: "An image whose configuration names a user has it as uid if it is a number and as username if it is not."},
		{name: "cri/image/container", level: Required, run: checkImageOfContainer,
			expect: "A container can be created with the id that PullImage returned, and its status and list entry lead back to that image."},
	}
}

// testImages is the image service as a check uses it: a call that had to work and
// failed ends the check.
type testImages struct {
	runtimeapi.ImageServiceClient
	t *T
}

// status is ImageStatus; nil is an image that is not there.
func (i testImages) status(ctx context.Context, ref string) *runtimeapi.Image {
	r, err := i.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: ref}})
	i.t.must(err, "ImageStatus of %s", ref)
	return r.Image
}

// imageThere is imageStatus of an image that must be there. It ends the check, as what follows
// needs the image.
func (i testImages) there(ctx context.Context, ref string) *runtimeapi.Image {
	im := i.status(ctx, ref)
	if im == nil {
		i.t.Fatalf("ImageStatus of %s, which was pulled, says that it is not there", ref)
	}
	return im
}

// remove is RemoveImage, which must work also for what is not there.
func (i testImages) remove(ctx context.Context, ref string) {
	_, err := i.RemoveImage(ctx, &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: ref}})
	i.t.must(err, "RemoveImage of %s", ref)
}

// listed returns an image's entry in the list of all, or nil. Listed twice is a failure on the
// way.
func (i testImages) listed(ctx context.Context, id string) *runtimeapi.Image {
	r, err := i.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	i.t.must(err, "ListImages")
	var out *runtimeapi.Image
	for _, im := range r.Images {
		if im.Id == id {
			if out != nil {
				i.t.Errorf("the image %s is listed twice", id)
			}
			out = im
		}
	}
	return out
}

// absent makes sure that a test image is not there, under whatever name. The
// check is skipped if somebody else has it, too. Pulling first is the only way to learn the id by
// which it may be known.
func (i testImages) absent(ctx context.Context, names ...string) {
	for _, name := range names {
		id := i.pull(ctx, i.t.suite.registry.Ref(i.own(name))) // to know its id
		im := i.there(ctx, id)
		if i.t.suite.present[id] || !ours(i.t.suite.prefix(), im) {
			i.t.Skipf("others use the image, too: %s", strings.Join(append(im.RepoTags, im.RepoDigests...), ", "))
		}
		i.remove(ctx, id)
	}
}

// own is a name of a test image in a repository that no other check uses.
func (i testImages) own(image string) string { return "check-" + i.t.id + "/" + image }

// checkImageAbsent: an image that is not there is an empty answer and no error,
// which is how a kubelet decides to pull. By name and by id: kubelets ask for both.
func checkImageAbsent(ctx context.Context, t *T) {
	ref := t.suite.registry.Ref(t.im.own(testImageName))
	for _, ref := range []string{ref, "sha256:" + t.unknownID()} {
		if im := t.im.status(ctx, ref); im != nil {
			t.Errorf("ImageStatus of %s, which is not there, is %v", ref, im)
		}
		t.im.remove(ctx, ref)
		t.im.remove(ctx, ref)
	}
}

// checkPullTag: what PullImage returns is an ID under which status and list know
// the image. The three views must agree, as pulling, garbage collection and node status use
// different ones.
func checkPullTag(ctx context.Context, t *T) {
	name := t.im.own(actor.Repository + ":layers")
	t.im.absent(ctx, actor.Repository+":layers")
	ref := t.suite.registry.Ref(name)
	id := t.im.pull(ctx, ref)
	for how, im := range map[string]*runtimeapi.Image{"the status by tag": t.im.there(ctx, ref), "the status by id": t.im.there(ctx, id), "the list": t.im.listed(ctx, id)} {
		if im == nil {
			t.Fatalf("it is not in %s", how)
		}
		if im.Id != id {
			t.Errorf("the id in %s is %q, and PullImage returned %q", how, im.Id, id)
		}
		if !slices.Equal(im.RepoTags, []string{ref}) {
			t.Errorf("repo_tags in %s are %q, not just %q", how, im.RepoTags, ref)
		}
		repo, _, _ := strings.Cut(ref, ":layers")
		if len(im.RepoDigests) != 1 || !strings.HasPrefix(im.RepoDigests[0], repo+"@sha256:") {
			t.Errorf("repo_digests in %s are %q, not just one of %s", how, im.RepoDigests, repo)
			continue
		}
		// A digest is a name as well.
		if same := t.im.status(ctx, im.RepoDigests[0]); same.GetId() != id {
			t.Errorf("the status of %s leads to the image %q, not %q", im.RepoDigests[0], same.GetId(), id)
		}
		if im.Size == 0 {
			t.Errorf("the size in %s is 0", how)
		}
	}
	if again := t.im.pull(ctx, ref); again != id {
		t.Errorf("a second pull returned %q, the first %q", again, id)
	}
}

// checkPullDigest: a reference by digest is found again by that digest. A tag would be a name
// that nobody asked for, and that another pull may move.
func checkPullDigest(ctx context.Context, t *T) {
	name := actor.Repository + ":layers"
	t.im.absent(ctx, name, name+"@")
	ref := t.suite.registry.Ref(t.im.own(name + "@"))
	id := t.im.pull(ctx, ref)
	im := t.im.there(ctx, ref)
	if im.Id != id {
		t.Errorf("the id is %q, and PullImage returned %q", im.Id, id)
	}
	if len(im.RepoTags) > 0 || !slices.Equal(im.RepoDigests, []string{ref}) {
		t.Errorf("repo_tags are %q, repo_digests %q; want none and just %q", im.RepoTags, im.RepoDigests, ref)
	}
	t.im.remove(ctx, ref)
	if t.im.status(ctx, id) != nil {
		t.Errorf("after a removal by digest it is still there")
	}
}

// checkPullLatest: no tag means latest.
func checkPullLatest(ctx context.Context, t *T) {
	t.im.absent(ctx, testImageName)
	ref := t.suite.registry.Ref(t.im.own(actor.Repository))
	id := t.im.pull(ctx, ref)
	if im := t.im.there(ctx, ref+":latest"); im.Id != id || !slices.Contains(im.RepoTags, ref+":latest") {
		t.Errorf("a pull of %s gave an image with the tags %q", ref, im.RepoTags)
	}
	if im := t.im.there(ctx, ref); im.Id != id {
		t.Errorf("ImageStatus without a tag gave %q, not %q", im.Id, id)
	}
	t.im.remove(ctx, ref)
	if t.im.status(ctx, ref+":latest") != nil {
		t.Errorf("after a removal without a tag it is still there")
	}
}

// checkPullMissing: what the registry has not is an error and leaves no image.
func checkPullMissing(ctx context.Context, t *T) {
	for _, name := range []string{"missing/" + t.id + "/" + testImageName, t.im.own(actor.Repository + ":no-such-tag")} {
		ref := t.suite.registry.Ref(name)
		r, err := t.im.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: ref}})
		t.wantError(err, "PullImage of an image that does not exist")
		if r.GetImageRef() != "" {
			t.Errorf("it returned %q", r.GetImageRef())
		}
		if t.im.status(ctx, ref) != nil {
			t.Errorf("%s is there", ref)
		}
	}
}

// checkPullDeadline: a pull ends with its caller's deadline. The registry answers slowly under
// that name, so the deadline comes first.
func checkPullDeadline(ctx context.Context, t *T) {
	ref := t.suite.registry.Ref("slow/" + t.id + "/" + actor.Repository + ":2")
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	r, err := t.im.PullImage(short, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: ref}})
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("PullImage with a deadline of 0.3 s took %v", took)
	}
	t.wantError(err, "PullImage of an image that takes longer than the deadline")
	if code := status.Code(err); err != nil && code != codes.DeadlineExceeded {
		t.Errorf("it failed with %s, want DeadlineExceeded", describe(err))
	}
	if r.GetImageRef() != "" || t.im.status(ctx, ref) != nil {
		t.Errorf("the image is there")
	}
}

// checkPullCredentials: credentials of the call are used for that call only. A runtime that
// remembers them would give one tenant's images to another.
func checkPullCredentials(ctx context.Context, t *T) {
	ref := t.suite.registry.Ref("private/" + t.id + "/" + testImageName)
	pull := func(auth *runtimeapi.AuthConfig) error {
		_, err := t.im.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: ref}, Auth: auth})
		return err
	}
	t.wantError(pull(nil), "PullImage of a private image without credentials")
	t.wantError(pull(&runtimeapi.AuthConfig{Username: actor.PrivateUser, Password: "wrong"}), "PullImage of a private image with a wrong password")
	t.must(pull(&runtimeapi.AuthConfig{Username: actor.PrivateUser, Password: actor.PrivatePassword}), "PullImage of a private image with its credentials")
}

// checkImageIdentity: names of one content are one image with one ID; image
// garbage collection counts on it. Were they two, garbage collection would count the size twice
// and remove one in use.
func checkImageIdentity(ctx context.Context, t *T) {
	ref := func(name string) string { return t.suite.registry.Ref(name) }
	other := "other-" + t.id + "/" + actor.Repository
	t.im.absent(ctx, testImageName, actor.Repository+":2")
	names := []string{ref(t.im.own(testImageName)), ref(t.im.own(actor.Repository + ":alias")), ref(other + ":1")}
	id := t.im.pull(ctx, names[0])
	for _, n := range names[1:] {
		if got := t.im.pull(ctx, n); got != id {
			t.Errorf("the same image has the id %q as %s and %q as %s", id, names[0], got, n)
		}
	}
	for _, how := range append([]string{id}, names...) {
		im := t.im.there(ctx, how)
		got, want := slices.Sorted(slices.Values(im.RepoTags)), slices.Sorted(slices.Values(names))
		if im.Id != id || !slices.Equal(got, want) {
			t.Errorf("the status of %s has the id %q and the tags %q, not %q and %q", how, im.Id, got, id, want)
		}
	}
	if second := t.im.pull(ctx, ref(t.im.own(actor.Repository+":2"))); second == id {
		t.Errorf("two different images have the id %q", id)
	}
}

// checkImageRemove: removing by a tag or by the ID, and what is left of the other
// names. Removal by one name takes them all: the CRI's RemoveImage is about the image.
func checkImageRemove(ctx context.Context, t *T) {
	for _, byID := range []bool{false, true} {
		t.im.absent(ctx, testImageName)
		names := []string{t.suite.registry.Ref(t.im.own(testImageName)), t.suite.registry.Ref(t.im.own(actor.Repository + ":alias"))}
		id := t.im.pull(ctx, names[0])
		t.im.pull(ctx, names[1])
		what := names[1]
		if byID {
			what = id
		}
		for range 2 {
			t.im.remove(ctx, what)
			for _, n := range append([]string{id}, names...) {
				if t.im.status(ctx, n) != nil {
					t.Errorf("after RemoveImage of %s the status of %s still has it", what, n)
				}
			}
			if t.im.listed(ctx, id) != nil {
				t.Errorf("after RemoveImage of %s it is still listed", what)
			}
		}
	}
}

// checkImageRemoveConcurrent: of several that remove at once none fails. Kubelets' garbage
// collection and people may meet.
func checkImageRemoveConcurrent(ctx context.Context, t *T) {
	t.im.absent(ctx, actor.Repository+":2")
	id := t.im.pull(ctx, t.suite.registry.Ref(t.im.own(actor.Repository+":2")))
	const n = 5
	var errs [n]error
	var there [n]bool
	var fns []func()
	for i := range n {
		fns = append(fns, func() {
			if _, errs[i] = t.im.RemoveImage(ctx, &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: id}}); errs[i] != nil {
				return
			}
			r, err := t.im.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: id}})
			errs[i], there[i] = err, r.GetImage() != nil
		})
	}
	group(fns...)
	for i := range n {
		if errs[i] != nil {
			t.Errorf("removal %d of %d at once: %s", i+1, n, describe(errs[i]))
		}
		if there[i] {
			t.Errorf("after removal %d of %d at once its caller still saw the image", i+1, n)
		}
	}
}

// checkImageFilter: it is optional because kubelets list without one.
func checkImageFilter(ctx context.Context, t *T) {
	ref, id := t.im.get(ctx, testImageName)
	list := func(name string) []string {
		r, err := t.im.ListImages(ctx, &runtimeapi.ListImagesRequest{Filter: &runtimeapi.ImageFilter{Image: &runtimeapi.ImageSpec{Image: name}}})
		t.must(err, "ListImages")
		return lists.Map(r.Images, func(im *runtimeapi.Image) string { return im.Id })
	}
	if got := list(ref); !slices.Equal(got, []string{id}) {
		t.Errorf("a list filtered by %s has %q, not just %q", ref, got, id)
	}
	if got := list(t.suite.registry.Ref(t.im.own(testImageName))); len(got) > 0 {
		t.Errorf("a list filtered by a name that is not there has %d images", len(got))
	}
}

// checkImageUser: runAsNonRoot is decided by uid and username of an image's
// status. A name that is no number can't be judged, and the kubelet refuses it
// (pkg/kubelet/kuberuntime, security_context.go).
func checkImageUser(ctx context.Context, t *T) {
	for _, x := range []struct {
		tag, name string
		uid       int64 // negative: none
	}{{"1", "", -1}, {"user", "", 1000}, {"user-group", "", 1000}, {"user-name", "actor", -1}, {"user-name-group", "actor", -1}} {
		ref, _ := t.im.get(ctx, actor.Repository+":"+x.tag)
		im := t.im.there(ctx, ref)
		uid := int64(-1)
		if im.Uid != nil {
			uid = im.Uid.Value
		}
		if x.tag == "1" && uid == 0 {
			uid = -1 // root, said or not
		}
		if uid != x.uid || im.Username != x.name {
			t.Errorf("an image of the user %q has the uid %v and the username %q", x.tag, im.Uid, im.Username)
		}
	}
}

// checkImageOfContainer: garbage collection finds the images in use by what
// containers say of theirs. Otherwise an image in use would look unused.
func checkImageOfContainer(ctx context.Context, t *T) {
	_, id := t.im.get(ctx, testImageName)
	c := t.running(ctx) // created with the id, as kubelets do
	s, item := t.status(ctx, c.id), t.theContainer(ctx, c.id)
	for where, got := range map[string][3]string{
		"the status": {s.GetImage().GetImage(), s.ImageRef, s.ImageId}, "the list": {item.GetImage().GetImage(), item.ImageRef, item.ImageId},
	} {
		for i, field := range []string{"image", "image_ref"} {
			if im := t.im.status(ctx, got[i]); im.GetId() != id {
				t.Errorf("%s in %s is %q, which leads to the image %q, not %q", field, where, got[i], im.GetId(), id)
			}
		}
		if got[2] != "" && got[2] != id { // image_id is of CRI 1.29
			t.Errorf("image_id in %s is %q, not %q", where, got[2], id)
		}
	}
}
