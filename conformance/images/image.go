package images

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/drydock-sim/drydock/fakecri/actor"
)

// made is the time that all images and files have: the same program makes the
// same digests everywhere.
var made = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// packer makes images that share the layer of the program.
type packer struct {
	layers map[string]v1.Layer // by the program's path
	code   []byte
	mark   string // Options.Mark
}

func newPacker(code []byte) *packer { return &packer{code: code, layers: map[string]v1.Layer{}} }

// image makes one of the test images.
func (p *packer) image(im *actor.Image) (v1.Image, error) {
	file := actor.Program
	if im.Repository == actor.PauseRepository {
		file = actor.PauseProgram
	}
	base := p.layers[file]
	if base == nil {
		var err error
		if base, err = layer(append(actor.BaseFiles(), actor.ImageFile{Path: file, Mode: 0o755, Text: string(p.code)})); err != nil {
			return nil, fmt.Errorf("image %s: %w", im.Name(), err)
		}
		p.layers[file] = base
	}
	adds := []mutate.Addendum{{Layer: base, History: v1.History{Created: v1.Time{Time: made}, CreatedBy: "drydock: program"}}}
	for _, f := range im.Files {
		l, err := layer([]actor.ImageFile{f})
		if err != nil {
			return nil, fmt.Errorf("image %s: %s: %w", im.Name(), f.Path, err)
		}
		adds = append(adds, mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: made}, CreatedBy: "drydock: " + f.Path}})
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.Append(img, adds...)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", im.Name(), err)
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", im.Name(), err)
	}
	cfg = cfg.DeepCopy()
	cfg.Author = p.mark
	cfg.OS, cfg.Architecture, cfg.Created = "linux", runtime.GOARCH, v1.Time{Time: made}
	cfg.Config = config(im)
	if img, err = mutate.ConfigFile(img, cfg); err != nil {
		return nil, fmt.Errorf("image %s: %w", im.Name(), err)
	}
	return img, nil
}

// index makes an index of an image and one of another platform that nobody
// here can run.
func (p *packer) index(img v1.Image) (v1.ImageIndex, error) {
	cfg, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	other := cfg.DeepCopy()
	other.Architecture = "s390x"
	foreign, err := mutate.ConfigFile(img, other)
	if err != nil {
		return nil, err
	}
	add := func(i v1.Image, arch string) mutate.IndexAddendum {
		return mutate.IndexAddendum{Add: i, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}}
	}
	return mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		add(foreign, other.Architecture), add(img, runtime.GOARCH)), nil
}

// config is an image's configuration.
func config(im *actor.Image) v1.Config {
	c := v1.Config{
		User: im.User, Entrypoint: im.Entrypoint, Cmd: im.Cmd, Env: im.Env, WorkingDir: im.WorkingDir, StopSignal: im.StopSignal,
	}
	for _, l := range im.Labels {
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		c.Labels[l[0]] = l[1]
	}
	for _, v := range im.Volumes {
		if c.Volumes == nil {
			c.Volumes = map[string]struct{}{}
		}
		c.Volumes[v] = struct{}{}
	}
	return c
}

// layer packs files.
func layer(files []actor.ImageFile) (v1.Layer, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: strings.TrimPrefix(f.Path, "/"), Mode: f.Mode, Size: int64(len(f.Text)),
			Uid: f.UID, Gid: f.GID, ModTime: made, Format: tar.FormatPAX,
		}
		if f.Dir {
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, f.Text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	data := buf.Bytes()
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}
