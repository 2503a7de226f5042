package fakecri

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Image is an entry of the catalogue.
type Image struct {
	// Name is a reference as a pod writes it: "app:1", "quay.io/a/b:2",
	// "app@sha256:...".
	Name string
	// Aliases are other names of the same image: one id, several tags.
	Aliases []string
	// Size is in bytes. 0 means Options.ImageSize.
	Size int64
	// Pull is how long a pull takes. Zero means Options.ImagePull. A pull of
	// what is present under that name takes an eighth.
	Pull Range
	// Fail makes pulls fail; nil means that they don't.
	Fail *PullFailure
	// Present says that the image is there from the start.
	Present bool
	// Pinned keeps the kubelet's garbage collection off it.
	Pinned bool
	// User is the image's user: "1002", "1003:1000", "www-data". "" is root.
	User string
	// Entrypoint and Cmd are what a container without command and args runs.
	Entrypoint, Cmd []string
	// Env is the image's environment, "NAME=value".
	Env []string
	// WorkingDir is the image's working directory. "" is /.
	WorkingDir string
	// StopSignal is what stops its containers; 0 means SIGTERM.
	StopSignal int
	// Commands are the programs that the image has: names, which are in /bin,
	// or absolute paths. Those that are known are interpreted, others run until
	// they are stopped, and everything else is not found. Nil means what a
	// well-known image has, or else that nothing is known.
	Commands []string
	// Standalone says that its busybox finds its applets without PATH, as that
	// of Debian does: the shell of an image with few Commands has them all.
	Standalone bool
	// Bare says that an image with stated Commands has nothing but them and
	// /tmp: no /etc/passwd, so that nobody in it has a name or a home.
	Bare bool
}

// PullFailure says how pulls of an image fail.
type PullFailure struct {
	// Code is a gRPC code; see ParseCode. Default Unknown, as containerd has
	// it for most failures.
	Code string
	// Message is the error's text. Default: what containerd says of an image
	// that the registry doesn't have.
	Message string
	// Times is how many pulls fail before the first that works; 0 means all.
	Times int
	// After is how long a pull takes to fail. Default 5 to 15 ms.
	After Range
}

// Validate tells what is wrong with the entry, naming the field.
func (im Image) Validate() error {
	if _, err := canonical(im.Name); err != nil {
		return fmt.Errorf("name: %q: %w", im.Name, err)
	}
	for i, a := range im.Aliases {
		if _, err := canonical(a); err != nil {
			return fmt.Errorf("aliases[%d]: %q: %w", i, a, err)
		}
	}
	if im.Size < 0 {
		return fmt.Errorf("size: negative")
	}
	if im.StopSignal < 0 || im.StopSignal > 64 {
		return fmt.Errorf("stopSignal: %d is not within 1 to 64", im.StopSignal)
	}
	for i, c := range im.Commands {
		if c == "" || strings.Contains(c, "/") && path.Clean(c) != c || strings.Contains(c, "/") && !path.IsAbs(c) {
			return fmt.Errorf("commands[%d]: %q is neither a name nor an absolute path", i, c)
		}
	}
	if im.Pull.Min < 0 {
		return fmt.Errorf("pull: negative")
	}
	if f := im.Fail; f != nil {
		if _, err := ParseCode(f.Code); err != nil {
			return fmt.Errorf("fail.code: %w", err)
		}
		if f.Times < 0 {
			return fmt.Errorf("fail.times: negative")
		}
	}
	return nil
}

// canonical is a reference in full: registry, repository, and digest or else
// tag ("latest" when there is neither).
func canonical(name string) (reference.Named, error) {
	n, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return nil, err
	}
	if d, ok := n.(reference.Digested); ok {
		return reference.WithDigest(reference.TrimNamed(n), d.Digest())
	}
	return reference.TagNameOnly(n), nil
}

// image is an image that is present, or was.
type image struct {
	id            string // "sha256:..."
	tags, digests []string
	source        *imageSource
	uid, gid      int64
	spec          *runtimeapi.ImageSpec // how container statuses show it
	ref           string                // a digested reference
	entry         *runtimeapi.Image     // what listings show
}

// imageSource is what can be pulled: an entry of the catalogue, or what is
// made up for a name outside it.
type imageSource struct {
	Image
	id, digest string
	pulls      uint64
	known      *knownImage
	commands   kernel.Commands // what its programs do; made when one is run
}

type imageStore struct {
	r       *Runtime
	sources map[string]*imageSource // by canonical name, and by digest
	byRef   map[string]*image       // by id, canonical tag and digest
	images  []*image                // in order of arrival
	list    []*runtimeapi.Image     // nil after a change
	// known remembers canonical names: to parse one takes microseconds, and
	// each start of a container asks several times.
	known map[string]string
}

func (st *imageStore) init(r *Runtime) {
	st.r = r
	st.sources = map[string]*imageSource{}
	st.byRef = map[string]*image{}
	st.known = map[string]string{}
	for i := range r.opts.Images {
		im := &r.opts.Images[i]
		src := st.newSource(*im, im.Name)
		for _, name := range append([]string{im.Name}, im.Aliases...) {
			c, _ := st.canonical(name)
			if st.sources[c] == nil {
				st.sources[c] = src
			}
			if im.Present {
				st.add(src, c)
			}
		}
	}
}

// newSource makes up ids for an image: the same name has the same on every
// node.
func (st *imageStore) newSource(im Image, name string) *imageSource {
	c, _ := st.canonical(name)
	src := &imageSource{Image: im, known: knownImageOf(repository(c))}
	src.adopt(src.known)
	if _, digest, ok := strings.Cut(c, "@"); ok {
		src.digest = digest
	} else {
		src.digest = "sha256:" + st.r.hashID("manifest", c)
	}
	src.id = "sha256:" + st.r.hashID("image", src.digest)
	if src.Size == 0 {
		src.Size = st.r.opts.ImageSize
	}
	if src.Pull == (Range{}) {
		src.Pull = st.r.opts.ImagePull
	}
	if st.sources[src.digest] == nil {
		st.sources[src.digest] = src
	}
	return src
}

// repository is a canonical name without tag and digest.
func repository(c string) string {
	c, _, _ = strings.Cut(c, "@")
	if i := strings.LastIndexByte(c, ':'); i > strings.LastIndexByte(c, '/') {
		c = c[:i]
	}
	return c
}

func (st *imageStore) canonical(name string) (string, error) {
	if c, ok := st.known[name]; ok {
		return c, nil
	}
	n, err := canonical(name)
	if err != nil {
		return "", err
	}
	if len(st.known) > 1000 {
		st.known = map[string]string{}
	}
	c := n.String()
	st.known[name] = c
	return c, nil
}

// find returns the image that is present under an id, tag or digest, or nil.
func (st *imageStore) find(name string) *image {
	if im := st.byRef[name]; im != nil {
		return im
	}
	c, err := st.canonical(name)
	if err != nil {
		return nil
	}
	return st.byRef[c]
}

// source returns what a pull of the canonical name brings, or nil.
func (st *imageStore) source(c string) *imageSource {
	if src := st.sources[c]; src != nil {
		return src
	}
	if _, digest, ok := strings.Cut(c, "@"); ok {
		if src := st.sources[digest]; src != nil {
			return src
		}
	}
	if st.r.opts.OnlyListedImages {
		return nil
	}
	src := st.newSource(Image{}, c)
	st.sources[c] = src
	return src
}

// add makes an image present under a canonical name.
func (st *imageStore) add(src *imageSource, c string) *image {
	im := st.byRef[src.id]
	if im == nil {
		im = &image{id: src.id, source: src}
		st.images = append(st.images, im)
		st.byRef[src.id] = im
		st.byRef[strings.TrimPrefix(src.id, "sha256:")] = im
	}
	if st.byRef[c] == im {
		return im
	}
	st.byRef[c] = im
	repo, _, byDigest := strings.Cut(c, "@")
	if byDigest {
		im.digests = appendNew(im.digests, c)
	} else {
		im.tags = appendNew(im.tags, c)
		repo = repo[:strings.LastIndexByte(repo, ':')]
		d := repo + "@" + src.digest
		im.digests = appendNew(im.digests, d)
		st.byRef[d] = im
	}
	im.describe()
	st.list = nil
	st.r.imageGen++
	return im
}

// appendNew is append of what is not there yet, into a new array: the old one
// has been handed out.
func appendNew(s []string, v string) []string {
	for _, o := range s {
		if o == v {
			return s
		}
	}
	return append(s[:len(s):len(s)], v)
}

// describe makes what is shown of the image anew.
func (im *image) describe() {
	e := &runtimeapi.Image{
		Id:          im.id,
		RepoTags:    im.tags,
		RepoDigests: im.digests,
		Size:        uint64(im.source.Size),
		Spec:        &runtimeapi.ImageSpec{},
		Pinned:      im.source.Pinned,
	}
	user, group, _ := strings.Cut(im.source.User, ":")
	if uid, err := strconv.ParseInt(user, 10, 64); err == nil {
		im.uid = uid
		e.Uid = &runtimeapi.Int64Value{Value: uid}
	} else {
		e.Username = user
	}
	im.gid, _ = strconv.ParseInt(group, 10, 64)
	im.ref = im.digests[0]
	name := im.ref
	if len(im.tags) > 0 {
		name = im.tags[0]
	}
	im.spec = &runtimeapi.ImageSpec{Image: name}
	im.entry = e
}

func (st *imageStore) remove(im *image) {
	if st.byRef[im.id] != im {
		return
	}
	delete(st.byRef, im.id)
	delete(st.byRef, strings.TrimPrefix(im.id, "sha256:"))
	for _, t := range im.tags {
		delete(st.byRef, t)
	}
	for _, d := range im.digests {
		delete(st.byRef, d)
	}
	st.images = deleteItem(st.images, im)
	st.list = nil
	st.r.imageGen++
}

// ListImages returns the images that are present, or the one that the filter
// names by id, tag or digest.
func (c *Client) ListImages(ctx context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	if err := c.read(ctx, mListImages, subject{timeout: -1}); err != nil {
		return nil, err
	}
	st := &c.r.images
	if name := filter.GetImage().GetImage(); name != "" {
		if im := st.find(name); im != nil {
			return []*runtimeapi.Image{im.entry}, nil
		}
		return nil, nil
	}
	if st.list == nil {
		st.list = make([]*runtimeapi.Image, 0, len(st.images))
		for _, im := range st.images {
			st.list = append(st.list, im.entry)
		}
	}
	return st.list, nil
}

// ImageStatus returns the image of that id, tag or digest; a nil image when it
// is not present.
func (c *Client) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	name := image.GetImage()
	if err := c.read(ctx, mImageStatus, subject{image: name, timeout: -1}); err != nil {
		return nil, err
	}
	resp := &runtimeapi.ImageStatusResponse{}
	if im := c.r.images.find(name); im != nil {
		resp.Image = im.entry
		if verbose {
			resp.Info = map[string]string{"info": `{"chainID":"` + im.source.digest + `"}`}
		}
	}
	return resp, nil
}

// PullImage makes an image present and returns its id.
func (c *Client) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, _ *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	md := sandbox.GetMetadata()
	sub := subject{namespace: md.GetNamespace(), pod: md.GetName(), attempt: md.GetAttempt(), image: image.GetImage(), timeout: -1}
	return change(ctx, c, mPullImage, &sub, func(ctx context.Context, d *daemon) (string, error) {
		return c.r.pullImage(ctx, d, &sub)
	})
}

func (r *Runtime) pullImage(ctx context.Context, d *daemon, sub *subject) (string, error) {
	name, err := r.images.canonical(sub.image)
	if err != nil {
		return "", status.Errorf(codes.InvalidArgument, "failed to parse image reference %q: %v", sub.image, err)
	}
	if err := r.gate(ctx, d, mPullImage, sub); err != nil {
		return "", err
	}
	if err := r.pause(ctx, mPullImage, sub); err != nil {
		return "", err
	}
	src := r.images.source(name)
	if src == nil {
		return "", status.Errorf(codes.NotFound, "failed to pull and unpack image %q: failed to resolve image: %s: not found", name, name)
	}
	n := src.pulls
	src.pulls++
	if f := src.Fail; f != nil && (f.Times == 0 || n < uint64(f.Times)) {
		return "", r.failPull(ctx, f, name, n)
	}
	took := r.l.Between(src.Pull.Min, src.Pull.Max, "pull", name, n)
	if r.images.byRef[name] != nil {
		took /= repeatShare
	}
	if err := r.l.Sleep(ctx, took); err != nil {
		return "", err
	}
	return r.images.add(src, name).id, nil
}

func (r *Runtime) failPull(ctx context.Context, f *PullFailure, name string, n uint64) error {
	after := f.After
	if after == (Range{}) {
		after = Range{Min: 5 * time.Millisecond, Max: 15 * time.Millisecond}
	}
	if err := r.l.Sleep(ctx, r.l.Between(after.Min, after.Max, "pull failure", name, n)); err != nil {
		return err
	}
	code, _ := ParseCode(f.Code)
	msg := f.Message
	if msg == "" {
		msg = fmt.Sprintf("failed to pull and unpack image %q: failed to resolve image: %s: not found", name, name)
	}
	return status.Error(code, msg)
}

// RemoveImage removes an image with all its names. What isn't present is no
// error; containers made of it live on.
func (c *Client) RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error {
	r, sub := c.r, subject{image: image.GetImage(), timeout: -1}
	_, err := change(ctx, c, mRemoveImage, &sub, func(ctx context.Context, d *daemon) (struct{}, error) {
		if err := r.gate(ctx, d, mRemoveImage, &sub); err != nil {
			return struct{}{}, err
		}
		if im := r.images.find(sub.image); im != nil {
			r.pauseRegardless(mRemoveImage, &sub)
			r.images.remove(im)
		}
		return struct{}{}, nil
	})
	return err
}

// imageFilesystem is where containerd keeps images and writable layers.
const imageFilesystem = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs"

// ImageFsInfo returns what the images take, their sizes' sum and one inode each,
// and the writable layers of containers.
func (c *Client) ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	if err := c.read(ctx, mImageFsInfo, subject{timeout: -1}); err != nil {
		return nil, err
	}
	var used uint64
	for _, im := range c.r.images.images {
		used += uint64(im.source.Size)
	}
	layers, inodes := c.r.writableLayers()
	used += uint64(layers)
	return &runtimeapi.ImageFsInfoResponse{
		ImageFilesystems: []*runtimeapi.FilesystemUsage{{
			Timestamp:  c.r.l.UnixNano(),
			FsId:       &runtimeapi.FilesystemIdentifier{Mountpoint: imageFilesystem},
			UsedBytes:  &runtimeapi.UInt64Value{Value: used},
			InodesUsed: &runtimeapi.UInt64Value{Value: uint64(len(c.r.images.images)) + uint64(inodes)},
		}},
	}, nil
}
