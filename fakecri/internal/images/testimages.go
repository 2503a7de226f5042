package images

import (
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/actor"
	"github.com/drydock-sim/drydock/fakecri/actor/fake"
	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// This file knows the test images of the conformance checks (package
// fakecri/actor): what they are, and what their repositories do to pulls.

// treeActor begins the names of their trees, each with its tag.
const treeActor = "actor\x00"

// testImageOf finds a test image by a canonical name. By digest it is the first
// of its repository: which one a made-up digest was meant for is known by who
// pulled it by tag.
func testImageOf(c string) (im *actor.Image, ours bool) {
	repo, tag := repository(c), "latest"
	base := path.Base(repo)
	if base != actor.Repository && base != actor.PauseRepository {
		return nil, false
	}
	if rest := strings.TrimPrefix(c, repo); strings.HasPrefix(rest, ":") {
		tag = rest[1:]
	}
	return actor.FindImage(base, tag), true
}

// adoptTest makes an image what the test image of that name is.
func (src *Source) adoptTest(c string) {
	im, ours := testImageOf(c)
	if !ours {
		return
	}
	if im == nil {
		if src.Fail == nil {
			src.Fail = &PullFailure{} // there is no such tag
		}
		return
	}
	src.Known = &knownImage{
		Tree: testTree(im), Closed: true, Entrypoint: im.Entrypoint, Cmd: im.Cmd, Env: im.Env,
		User: im.User, Dir: im.WorkingDir, StopSignal: actor.SignalNumber(im.StopSignal),
	}
	src.adopt(src.Known)
	src.commands = fake.Commands()
	t, trouble := actor.TroubleOf(repository(c))
	switch {
	case !trouble:
	case t.Status == http.StatusNotFound && src.Fail == nil:
		src.Fail = &PullFailure{}
	case (t.Status != 0 || t.Corrupt) && src.Fail == nil:
		text := fmt.Sprintf("unexpected status code %d %s", t.Status, http.StatusText(t.Status))
		if t.Corrupt {
			text = "failed commit on ref: unexpected commit digest, expected another: failed precondition"
		}
		src.Fail = &PullFailure{Message: fmt.Sprintf("failed to pull and unpack image %q: %s", c, text)}
	case t.Delay > 0:
		src.Pull = program.Range{Min: t.Delay, Max: t.Delay}
	case t.User != "" && src.Auth == nil:
		src.Auth = &ImageAuth{Username: t.User, Password: t.Password}
	}
}

// testImageBase is the name of a test image wherever it comes from, "" for one
// whose repository is trouble: that is by itself.
func testImageBase(c string) (base string, ours bool) {
	im, ours := testImageOf(c)
	if _, trouble := actor.TroubleOf(repository(c)); im == nil || trouble {
		return "", ours
	}
	return im.Name(), true
}

// Commandless reports whether nothing says what a container of the image is to
// run. What is not known of other images is no reason to say so.
func (src *Source) Commandless(cfg *runtimeapi.ContainerConfig) bool {
	return src.Known != nil && len(src.Entrypoint)+len(src.Cmd)+len(cfg.Command)+len(cfg.Args) == 0
}

// testTree is the name of a test image's tree; those without files of their own
// share one.
func testTree(im *actor.Image) string {
	if im.Repository == actor.PauseRepository || len(im.Files) > 0 {
		return treeActor + im.Name()
	}
	return treeActor + actor.Repository + ":1"
}

// testTrees lists the trees of the test images.
func testTrees() []string {
	var out []string
	list := actor.Images()
	for i := range list {
		if name := testTree(&list[i]); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// populateActor makes the tree of a test image.
func populateActor(f *memfs.FS, name string) error {
	repo, tag, _ := strings.Cut(strings.TrimPrefix(name, treeActor), ":")
	im := actor.FindImage(repo, tag)
	program := actor.Program
	if repo == actor.PauseRepository {
		program = actor.PauseProgram
	}
	for _, dir := range []string{"/dev", "/proc", "/sys"} { // runc mounts on them
		if err := f.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := f.WriteFile(program, kernel.ELF(path.Base(program)), 0o755); err != nil {
		return err
	}
	for _, x := range append(actor.BaseFiles(), im.Files...) {
		err := error(nil)
		if x.Dir {
			err = f.MkdirAll(x.Path, 0o755)
		} else {
			err = f.WriteFile(x.Path, []byte(x.Text), 0o644)
		}
		if err == nil {
			err = f.Chmod(x.Path, fileMode(x.Mode))
		}
		if err == nil && (x.UID != 0 || x.GID != 0) {
			err = f.Chown(x.Path, x.UID, x.GID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fileMode is a mode as an archive has it.
func fileMode(mode int64) fs.FileMode {
	out := fs.FileMode(mode & 0o777)
	if mode&0o1000 != 0 {
		out |= fs.ModeSticky
	}
	return out
}
