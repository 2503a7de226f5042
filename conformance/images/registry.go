package images

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/drydock-sim/drydock/fakecri/actor"
)

// namespace begins the names of all repositories.
const namespace = "drydock"

// Registry serves the test images. Its methods may be called from any
// goroutine.
type Registry struct {
	addr    string
	server  *http.Server
	store   http.Handler
	digests map[string]string // by name, "drydock-actor:1"
	configs map[string]string

	mu     sync.Mutex
	pulls  map[string]int
	faults map[string]Fault
}

// Options configure a Registry.
type Options struct {
	// Addr is where to listen. "" means any port of 127.0.0.1.
	Addr string
	// Program is the test program's file; "" means the embedded one (see the
	// package comment).
	Program string
	// Advertise is the host, or host:port, by which runtimes reach the
	// registry if that is not where it listens ("0.0.0.0:5000").
	Advertise string
	// Mark, if not empty, is the images' author: images of another mark have
	// other ids, so that what is done to these is not done to those.
	Mark string
}

// New makes the test images and serves them until Close, or until ctx ends.
func New(ctx context.Context, o Options) (*Registry, error) {
	o.Addr = cmp.Or(o.Addr, "127.0.0.1:0")
	code, err := program(ctx, o.Program)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("test registry: %w", err)
	}
	r := &Registry{
		addr: advertised(l.Addr().String(), o.Advertise), digests: map[string]string{}, configs: map[string]string{},
		store: registry.New(registry.Logger(log.New(io.Discard, "", 0))),
		pulls: map[string]int{}, faults: map[string]Fault{},
	}
	r.server = &http.Server{Handler: http.HandlerFunc(r.serve), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = r.server.Serve(l) }()
	pack := newPacker(code)
	pack.mark = o.Mark
	if err := r.fill(ctx, l.Addr().String(), pack); err != nil {
		r.Close()
		return nil, err
	}
	context.AfterFunc(ctx, r.Close)
	return r, nil
}

// advertised is the host and port that references have.
func advertised(listen, as string) string {
	_, port, _ := net.SplitHostPort(listen)
	switch _, _, err := net.SplitHostPort(as); {
	case as == "":
		return listen
	case err == nil:
		return as
	}
	return net.JoinHostPort(as, port)
}

// Close ends the serving. Pulls under way fail.
func (r *Registry) Close() { _ = r.server.Close() }

// Addr is the host and port that references to images begin with.
func (r *Registry) Addr() string { return r.addr }

// fill puts the images in.
func (r *Registry) fill(ctx context.Context, listen string, p *packer) error {
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	list := actor.Images()
	for i := range list {
		im := &list[i]
		img, err := p.image(im)
		if err != nil {
			return err
		}
		digest, err := img.Digest()
		if err != nil {
			return fmt.Errorf("image %s: %w", im.Name(), err)
		}
		id, err := img.ConfigName()
		if err != nil {
			return fmt.Errorf("image %s: %w", im.Name(), err)
		}
		var idx v1.ImageIndex
		if im.Index {
			if idx, err = p.index(img); err == nil {
				digest, err = idx.Digest()
			}
			if err != nil {
				return fmt.Errorf("image %s: %w", im.Name(), err)
			}
		}
		for _, tag := range append([]string{im.Tag}, im.Aliases...) {
			ref, err := name.NewTag(listen+"/"+namespace+"/"+im.Repository+":"+tag, name.Insecure)
			if err != nil {
				return fmt.Errorf("image %s: %w", im.Name(), err)
			}
			opts := []remote.Option{remote.WithContext(ctx), remote.WithTransport(tr)}
			if idx != nil {
				err = remote.WriteIndex(ref, idx, opts...)
			} else {
				err = remote.Write(ref, img, opts...)
			}
			if err != nil {
				return fmt.Errorf("image %s: into the test registry: %w", im.Name(), err)
			}
			r.digests[im.Repository+":"+tag] = digest.String()
			r.configs[im.Repository+":"+tag] = id.String()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pulls = map[string]int{} // what was counted so far was writing
	return nil
}

// Ref is the full reference of a test image: of "drydock-actor:1",
// "check-17/drydock-actor:1", "drydock-actor" (tag latest) or
// "drydock-actor:1@" (by digest). Of a name that is no test image it is one
// that the registry doesn't have.
func (r *Registry) Ref(image string) string {
	if im, ok := strings.CutSuffix(image, "@"); ok {
		repo, _ := split(im)
		return r.addr + "/" + namespace + "/" + repo + "@" + r.Digest(im)
	}
	return r.addr + "/" + namespace + "/" + image
}

// Rewrite is Ref for the names of test images, and leaves other references as
// they are.
func (r *Registry) Rewrite(image string) string {
	repo, _ := split(strings.TrimSuffix(image, "@"))
	if first, _, ok := strings.Cut(repo, "/"); ok && strings.ContainsAny(first, ".:") {
		return image // it names a registry
	}
	switch path.Base(repo) {
	case actor.Repository, actor.PauseRepository:
		return r.Ref(image)
	}
	return image
}

// Digest is the digest of the manifest that a test image's name
// ("drydock-actor:1") leads to, "" if there is none.
func (r *Registry) Digest(image string) string { return r.digests[key(image)] }

// ConfigDigest is the digest of a test image's configuration: its id.
func (r *Registry) ConfigDigest(image string) string { return r.configs[key(image)] }

// key is a test image's name without aliases of its repository.
func key(image string) string {
	repo, tag := split(image)
	return path.Base(repo) + ":" + tag
}

// split cuts the tag off a name without digest.
func split(image string) (repo, tag string) {
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		return image[:i], image[i+1:]
	}
	return image, "latest"
}

// Pulls tells how many times a runtime has asked what a tag of a repository
// ("drydock-actor", "check-17/drydock-actor") leads to, which each pull by tag
// does at least once. (The manifest itself is not fetched by a runtime that has
// it.)
func (r *Registry) Pulls(repository string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pulls[repository]
}
