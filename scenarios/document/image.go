package document

import (
	"path"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// Image is what is known of a container image.
type Image struct {
	// The image, as pods name it: `app:1`, `quay.io/a/b:2`. With * or ? in it, every image whose name matches is one of its own, with what is said here.
	Name string `json:"name" required:""`
	// Other names of the same image.
	Aliases []string `json:"aliases,omitempty"`
	// Its size. 50M unless said.
	Size *resource.Quantity `json:"size,omitempty"`
	// How many bytes it takes on disk once it is unpacked. Its size unless said.
	Unpacked *resource.Quantity `json:"unpacked,omitempty"`
	// How many files and directories that is. One unless said.
	Inodes *resource.Quantity `json:"inodes,omitempty"`
	// How pulling it goes.
	Pull Pull `json:"pull,omitempty"`
	// What its pulls must be authorised with. Unless said, nothing.
	Auth *ImageAuth `json:"auth,omitempty"`
	// It is on the nodes from the start.
	Present bool `json:"present,omitempty"`
	// The kubelet's garbage collection leaves it alone.
	Pinned bool `json:"pinned,omitempty"`
	// The commands that it has: names, or absolute paths. What busybox has, and sh, is run; others run until they are stopped; whatever else is asked for is not found. Unless said, what a well-known image has, or else every command of busybox.
	Commands []string `json:"commands,omitempty"`
	// Text files that it has besides, by absolute path. An image of which nothing but files is said shows just these where it is mounted as a volume.
	Files map[string]string `json:"files,omitempty"`
	// What a container runs that has no command.
	Entrypoint []string `json:"entrypoint,omitempty"`
	// The arguments to the entrypoint of a container that has neither command nor args.
	Cmd []string `json:"cmd,omitempty"`
	// Whom its containers run as: a number, or a name that is in its /etc/passwd, or either of both with a group, `1000:1000`. root unless said.
	User string `json:"user,omitempty"`
	// The environment of its containers.
	Env map[string]string `json:"env,omitempty"`
	// Where its containers' processes start. / unless said.
	WorkingDir string `json:"workingDir,omitempty"`
	// The signal that stops its containers. SIGTERM unless said.
	StopSignal value.Signal `json:"stopSignal,omitempty"`
}

// ImageAuth is what an image's registry lets in.
type ImageAuth struct {
	// The user's name.
	Username string `json:"username" required:""`
	// The password.
	Password string `json:"password" required:""`
}

// Pull is how pulling an image goes.
type Pull struct {
	// How long a pull takes: a time or a range. 1s..3s unless said.
	Takes *value.Range `json:"takes,omitempty"`
	// Pulls fail.
	Fails *PullFailure `json:"fails,omitempty"`
}

// PullFailure is how pulls of an image fail.
type PullFailure struct {
	// The error's text. Unless said, what containerd says of an image that the registry does not have.
	Message string `json:"message,omitempty"`
	// The error's gRPC code. Unknown unless said.
	Code string `json:"code,omitempty" enum:"Canceled,Unknown,InvalidArgument,DeadlineExceeded,NotFound,AlreadyExists,PermissionDenied,ResourceExhausted,FailedPrecondition,Aborted,OutOfRange,Unimplemented,Internal,Unavailable,DataLoss,Unauthenticated"`
	// How many pulls fail before the first that works; all of them unless said. Each node counts for itself.
	Times int `json:"times,omitempty"`
}

// Check wants names that are images', and what containers can be made of.
func (im *Image) Check(at decode.Place) {
	switch name := at.Field("name"); {
	case im.Name == "":
	case strings.ContainsAny(im.Name, "*?"):
		if im.Present || len(im.Aliases) > 0 {
			name.Errorf("%q stands for many images, which have no aliases and are not present", decode.Short(im.Name))
		}
	default:
		checkReference(name, im.Name)
	}
	for k, name := range im.Aliases {
		checkReference(at.Field("aliases").Index(k), name)
	}
	value.Bytes().CheckLeast(at.Field("size"), im.Size, 0)
	value.Bytes().CheckLeast(at.Field("unpacked"), im.Unpacked, 1)
	value.Count().CheckLeast(at.Field("inodes"), im.Inodes, 1)
	for i, c := range im.Commands {
		if c == "" || strings.Contains(c, "/") && !isCleanPath(c) {
			at.Field("commands").Index(i).Errorf("%q is neither a name nor an absolute path", c)
		}
	}
	for _, name := range decode.SortedKeys(im.Files) {
		if !isCleanPath(name) || name == "/" {
			at.Field("files").Key(name).Errorf("%q is no absolute path of a file", name)
			continue
		}
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			if _, ok := im.Files[dir]; ok {
				at.Field("files").Key(dir).Errorf("%q is a directory of %q", dir, name)
			}
		}
	}
	if len(im.Files) > 0 && strings.ContainsAny(im.Name, "*?") {
		at.Field("files").Errorf("%q stands for many images, which have none", decode.Short(im.Name))
	}
	if im.WorkingDir != "" && !path.IsAbs(im.WorkingDir) {
		at.Field("workingDir").Errorf("%q is no absolute path", im.WorkingDir)
	}
}

// checkImages wants no image twice.
func checkImages(at decode.Place, images []Image) {
	first := map[string]int{}
	for i := range images {
		name := images[i].Name
		if j, ok := first[name]; ok {
			at.Index(i).Field("name").Errorf("the image %q is spec.images[%d] too", decode.Short(name), j)
			continue
		}
		first[name] = i
	}
}

// checkReference refuses what is no image's name.
func checkReference(at decode.Place, name string) {
	if _, err := reference.ParseNormalizedNamed(name); err != nil {
		at.Errorf("%q is no image: %v", decode.Short(name), err)
	}
}

// isCleanPath reports whether a path is absolute and written as short as it can be.
func isCleanPath(p string) bool { return path.IsAbs(p) && path.Clean(p) == p }

// Check refuses a negative number of failures.
func (f *PullFailure) Check(at decode.Place) {
	value.NotNegative(at.Field("times"), f.Times)
}

// RuntimeImages are images as the runtime takes them.
func RuntimeImages(in []Image) []fakecri.Image {
	out := make([]fakecri.Image, 0, len(in))
	for i := range in {
		im := &in[i]
		f := fakecri.Image{
			Name: im.Name, Aliases: im.Aliases, Pull: im.Pull.Takes.Runtime(), Present: im.Present, Pinned: im.Pinned,
			Commands: im.Commands, Files: im.Files, Entrypoint: im.Entrypoint, Cmd: im.Cmd,
			User: im.User, WorkingDir: im.WorkingDir, StopSignal: int(im.StopSignal),
		}
		for _, name := range decode.SortedKeys(im.Env) {
			f.Env = append(f.Env, name+"="+im.Env[name])
		}
		f.Size, f.Unpacked, f.Inodes = amountOf(im.Size), amountOf(im.Unpacked), amountOf(im.Inodes)
		if a := im.Auth; a != nil {
			f.Auth = &fakecri.ImageAuth{Username: a.Username, Password: a.Password}
		}
		if p := im.Pull.Fails; p != nil {
			f.Fail = &fakecri.PullFailure{Code: p.Code, Message: p.Message, Times: p.Times, After: im.Pull.Takes.Runtime()}
		}
		out = append(out, f)
	}
	return out
}
