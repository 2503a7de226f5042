package images

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/distribution/reference"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// Image is an entry of the catalogue.
type Image struct {
	// Name is a reference as a pod writes it: "app:1", "quay.io/a/b:2",
	// "app@sha256:...". With * or ? in it, it is a pattern: every image whose
	// full name ("docker.io/library/app:1") or short name matches is one of
	// its own, with what the entry says.
	Name string
	// Aliases are other names of the same image: one id, several tags.
	Aliases []string
	// Size is in bytes. 0 means Options.ImageSize.
	Size int64
	// Unpacked is what it takes on disk, in bytes; 0 means Size. Inodes counts
	// its files; 0 means 1.
	Unpacked, Inodes int64
	// Pull is how long a pull takes. Zero means Options.ImagePull. A pull of
	// what is present under that name takes an eighth.
	Pull program.Range
	// Fail makes pulls fail; nil means that they don't.
	Fail *PullFailure
	// Auth is what a pull must be authorised with; nil means nothing.
	Auth *ImageAuth
	// Annotations are those of the image's spec in listings.
	Annotations map[string]string
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
	// Files are text files that it has besides, by absolute path.
	Files map[string]string
	// Bare says that an image with stated Commands has nothing but them and
	// /tmp: no /etc/passwd, so that nobody in it has a name or a home.
	Bare bool
}

// ImageAuth is what the registry of an image lets in.
type ImageAuth struct{ Username, Password string }

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
	After program.Range
}

// Validate returns what is wrong with the entry, naming the field.
func (im Image) Validate() error {
	switch {
	case im.pattern():
		if im.Present || len(im.Aliases) > 0 {
			return fmt.Errorf("name: %q is a pattern, which has no aliases and is not present", im.Name)
		}
	default:
		if _, err := Canonical(im.Name); err != nil {
			return fmt.Errorf("name: %q: %w", im.Name, err)
		}
	}
	for i, a := range im.Aliases {
		if _, err := Canonical(a); err != nil {
			return fmt.Errorf("aliases[%d]: %q: %w", i, a, err)
		}
	}
	switch {
	case im.Size < 0:
		return fmt.Errorf("size: negative")
	case im.Unpacked < 0:
		return fmt.Errorf("unpacked: negative")
	case im.Inodes < 0:
		return fmt.Errorf("inodes: negative")
	}
	if im.StopSignal < 0 || im.StopSignal > 64 {
		return fmt.Errorf("stopSignal: %d is not within 1 to 64", im.StopSignal)
	}
	for i, c := range im.Commands {
		if c == "" || strings.Contains(c, "/") && path.Clean(c) != c || strings.Contains(c, "/") && !path.IsAbs(c) {
			return fmt.Errorf("commands[%d]: %q is neither a name nor an absolute path", i, c)
		}
	}
	if err := im.checkFiles(); err != nil {
		return err
	}
	if im.Pull.Min < 0 {
		return fmt.Errorf("pull: negative")
	}
	if f := im.Fail; f != nil {
		if _, err := calls.ParseCode(f.Code); err != nil {
			return fmt.Errorf("fail.code: %w", err)
		}
		if f.Times < 0 {
			return fmt.Errorf("fail.times: negative")
		}
	}
	return nil
}

// pattern reports whether the entry is one for all names that match.
func (im Image) pattern() bool { return strings.ContainsAny(im.Name, "*?") }

// Canonical is a reference in full: registry, repository, and digest or else
// tag ("latest" when there is neither).
func Canonical(name string) (reference.Named, error) {
	n, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return nil, err
	}
	if d, ok := n.(reference.Digested); ok {
		return reference.WithDigest(reference.TrimNamed(n), d.Digest())
	}
	return reference.TagNameOnly(n), nil
}

// Present is an image that is present, or was.
type Present struct {
	ID            string // "sha256:..."
	Tags, digests []string
	Source        *Source
	UID, GID      int64
	Spec          *runtimeapi.ImageSpec           // how container statuses show it
	Ref           string                          // a digested reference
	Entry         *runtimeapi.Image               // what listings show; replaced with status
	User          *runtimeapi.ContainerUser       // of the last container shown without supplementary groups
	Status        *runtimeapi.ImageStatusResponse // made of entry when first asked for
}

// Source is what can be pulled: an entry of the catalogue, or what is
// made up for a name outside it.
type Source struct {
	Image
	ID, Digest string
	Pulls      uint64
	holders    int // see Runtime.holdImage
	// Listed: an entry of the catalogue names it. Told: somebody was told that nobody
	// knows what it runs.
	Listed, Told bool
	Known        *knownImage
	commands     kernel.Commands // what its programs do; made when one is run
	users        *users          // of its files; made for the first status
}

// Store has the images of one node.
type Store struct {
	Disk      *memfs.Share
	Gen       uint64
	l         *loop.Loop
	opts      Options
	catalogue *catalogue
	trees     *Trees
	commands  kernel.Commands     // what interpreted programs do; made for the first
	sources   map[string]*Source  // by canonical name, by digest, and by base name
	ByRef     map[string]*Present // by id, canonical tag and digest
	Images    []*Present          // in order of arrival
	List      []*runtimeapi.Image // nil after a change
	Pulled    []PullCount
	// known remembers canonical names: to parse one takes microseconds, and
	// each start of a container asks several times.
	known map[string]string
	table *imageTable // set while init runs only; nil: nothing is shared
}

// Options are those of Options.
type Options struct {
	Loop                               *loop.Loop
	Images                             []Image
	OnlyListedImages, ImagesByBaseName bool
	SandboxImage                       string
	ImageSize                          int64
	ImagePull                          program.Range
	Disk                               *memfs.Share
	Trees                              *Trees
	NoElide                            bool
}

// New returns a store with the images that are present from the start. Trees that
// are shared are written to here only.
func New(opts Options) *Store {
	st := &Store{l: opts.Loop, opts: opts, Disk: opts.Disk, trees: opts.Trees, Gen: 1}
	if st.trees != nil {
		st.catalogue = st.trees.catalogue
		st.trees.prepare(st.l, opts.Images)
	} else {
		st.catalogue = newCatalogue()
	}
	st.init()
	return st
}

// init makes the sources of the catalogue, and the images that are present.
func (st *Store) init() {
	if st.trees != nil {
		st.table = st.trees.Table
	}
	st.sources = map[string]*Source{}
	st.ByRef = map[string]*Present{}
	st.known = map[string]string{}
	for i := range st.opts.Images {
		im := &st.opts.Images[i]
		if im.pattern() {
			continue
		}
		src := st.newSource(*im, im.Name)
		src.Listed = true
		for _, name := range append([]string{im.Name}, im.Aliases...) {
			c, _ := st.Canonical(name)
			if st.sources[c] == nil {
				st.sources[c] = src
			}
			if b := st.baseName(c); b != "" && st.sources[b] == nil {
				st.sources[b] = src
			}
			if im.Present {
				st.Add(src, c)
			}
		}
	}
	if name := st.opts.SandboxImage; name != "" {
		c, _ := st.Canonical(name)
		src := st.Source(c)
		if src == nil {
			src = st.newSource(Image{}, c)
			st.sources[c] = src
		}
		src.Pinned = true
		st.Add(src, c)
	}
	for _, im := range st.Images {
		st.table.share(im)
	}
	st.table = nil // from now on other runtimes may run on other cores
}

// baseName is what names the same image wherever it comes from, if the runtime
// goes by that: the last element of the repository's name, and the tag unless
// all tags of it are known to be one image. "" for a digest.
func (st *Store) baseName(c string) string {
	if !st.opts.ImagesByBaseName || strings.Contains(c, "@") {
		return ""
	}
	base := path.Base(c)
	if b, ours := testImageBase(c); ours {
		return b
	}
	name, _, _ := strings.Cut(base, ":")
	if k := st.catalogue.find(name); k != nil && k.OneImageOfAllTags {
		return name
	}
	return base
}

// newSource makes up ids for an image: the same name has the same on every
// node.
func (st *Store) newSource(im Image, name string) *Source {
	c, _ := st.Canonical(name)
	src := &Source{Image: im, Known: st.catalogue.find(repository(c))}
	src.adopt(src.Known)
	src.adoptTest(c)
	if _, digest, ok := strings.Cut(c, "@"); ok {
		src.Digest = digest
	} else if b := st.baseName(c); b != "" && st.sources[b] == nil {
		src.Digest = "sha256:" + Hash("manifest", b)
	} else {
		src.Digest = "sha256:" + Hash("manifest", c)
	}
	src.Digest = st.table.text(src.Digest)
	src.ID = st.table.text("sha256:" + Hash("image", src.Digest))
	src.Size = cmp.Or(src.Size, st.opts.ImageSize)
	if src.Pull == (program.Range{}) {
		src.Pull = st.opts.ImagePull
	}
	if st.sources[src.Digest] == nil {
		st.sources[src.Digest] = src
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

// Canonical is the full name of a reference, remembered.
func (st *Store) Canonical(name string) (string, error) {
	if c, ok := st.known[name]; ok {
		return c, nil
	}
	n, err := Canonical(name)
	if err != nil {
		return "", err
	}
	if len(st.known) > 1000 {
		st.known = map[string]string{}
	}
	c := st.table.text(n.String())
	st.known[name] = c
	return c, nil
}

// Find returns the image that is present under an id, the unique beginning of
// one, a tag or a digest, or nil.
func (st *Store) Find(name string) *Present {
	if im := st.ByRef[name]; im != nil {
		return im
	}
	if c, err := st.Canonical(name); err == nil && st.ByRef[c] != nil {
		return st.ByRef[c]
	}
	return st.byPrefix(name)
}

// byPrefix finds an image by the beginning of its id, of which crictl prints
// 13 digits.
func (st *Store) byPrefix(name string) *Present {
	hex := strings.TrimPrefix(name, "sha256:")
	if hex == "" || len(hex) >= 64 || strings.Trim(hex, "0123456789abcdef") != "" {
		return nil
	}
	var found *Present
	for _, im := range st.Images {
		if !strings.HasPrefix(im.ID[len("sha256:"):], hex) {
			continue
		}
		if found != nil {
			return nil
		}
		found = im
	}
	return found
}

// Source returns what a pull of the canonical name brings, or nil.
func (st *Store) Source(c string) *Source {
	if src := st.sources[c]; src != nil {
		return src
	}
	if _, digest, ok := strings.Cut(c, "@"); ok {
		if src := st.sources[digest]; src != nil {
			return src
		}
	}
	b := st.baseName(c)
	if src := st.sources[b]; b != "" && src != nil {
		return src
	}
	template := st.template(c)
	listed := template != nil
	if !listed {
		if st.opts.OnlyListedImages {
			return nil
		}
		template = &Image{}
	}
	src := st.newSource(*template, c)
	src.Listed = listed
	st.sources[c] = src
	if b != "" {
		st.sources[b] = src
	}
	return src
}

// template returns the first pattern of the catalogue that matches a canonical
// name, or nil.
func (st *Store) template(c string) *Image {
	for i := range st.opts.Images {
		if im := &st.opts.Images[i]; im.pattern() && (program.MatchPattern(im.Name, c) || program.MatchPattern(im.Name, familiar(c))) {
			return im
		}
	}
	return nil
}

// familiar is a canonical name as people write it.
func familiar(c string) string {
	c = strings.TrimPrefix(c, "docker.io/")
	return strings.TrimPrefix(c, "library/")
}

// Add makes an image present under a canonical name.
func (st *Store) Add(src *Source, c string) *Present {
	im := st.ByRef[src.ID]
	if im == nil {
		im = &Present{ID: src.ID, Source: src}
		st.HoldImage(src)
		st.Images = append(st.Images, im)
		st.ByRef[src.ID] = im
		st.ByRef[strings.TrimPrefix(src.ID, "sha256:")] = im
	}
	if st.ByRef[c] == im {
		return im
	}
	st.ByRef[c] = im
	repo, _, byDigest := strings.Cut(c, "@")
	if byDigest {
		im.digests = appendNew(im.digests, c)
	} else {
		im.Tags = appendNew(im.Tags, c)
		repo = repo[:strings.LastIndexByte(repo, ':')]
		d := st.table.text(repo + "@" + src.Digest)
		im.digests = appendNew(im.digests, d)
		st.ByRef[d] = im
	}
	im.describe()
	st.List = nil
	st.Gen++
	return im
}

// appendNew is append of what is not there yet, into a new array: the old one
// has been handed out.
func appendNew(s []string, v string) []string {
	if slices.Contains(s, v) {
		return s
	}
	return append(s[:len(s):len(s)], v)
}

// describe makes what is shown of the image anew.
func (im *Present) describe() {
	e := &runtimeapi.Image{
		Id:          im.ID,
		RepoTags:    im.Tags,
		RepoDigests: im.digests,
		Size:        uint64(im.Source.Size),
		Spec:        &runtimeapi.ImageSpec{Annotations: im.Source.Annotations},
		Pinned:      im.Source.Pinned,
	}
	user, group, _ := strings.Cut(im.Source.User, ":")
	if uid, err := strconv.ParseInt(user, 10, 64); err == nil {
		im.UID = uid
		e.Uid = &runtimeapi.Int64Value{Value: uid}
	} else {
		e.Username = user
	}
	im.GID, _ = strconv.ParseInt(group, 10, 64)
	im.Ref = im.digests[0]
	name := im.Ref
	if len(im.Tags) > 0 {
		name = im.Tags[0]
	}
	im.Spec = &runtimeapi.ImageSpec{Image: name}
	im.Entry, im.Status = e, nil
}

// Remove takes an image away with all its names; containers made of it keep its
// files.
func (st *Store) Remove(im *Present) {
	if st.ByRef[im.ID] != im {
		return
	}
	delete(st.ByRef, im.ID)
	delete(st.ByRef, strings.TrimPrefix(im.ID, "sha256:"))
	for _, t := range im.Tags {
		delete(st.ByRef, t)
	}
	for _, d := range im.digests {
		delete(st.ByRef, d)
	}
	st.Images = slices.DeleteFunc(st.Images, func(o *Present) bool { return o == im })
	st.ReleaseImage(im.Source)
	st.List = nil
	st.Gen++
}
