package actor

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"
)

// Program is where the images have the program.
const Program = "/actor"

// PauseProgram is where the pause image has it: called by that name it waits to
// be stopped and reaps what it inherits.
const PauseProgram = "/pause"

// The last elements of the images' repositories. Whatever comes before them is
// up to the registry: a runtime knows the images by these.
const (
	Repository      = "drydock-actor"
	PauseRepository = "drydock-pause"
)

// Image is one of the test images: what its configuration says, and which files
// it has beside the program.
type Image struct {
	// Repository is the last element of its repository's name, Tag its tag.
	Repository, Tag string
	// Aliases are further tags of the same image.
	Aliases []string
	// User, Entrypoint, Cmd, Env, WorkingDir, StopSignal, Labels and Volumes
	// are those of an image's configuration. StopSignal is a name ("SIGUSR1").
	User            string
	Entrypoint, Cmd []string
	Env             []string
	WorkingDir      string
	StopSignal      string
	Labels          [][2]string
	Volumes         []string
	// Files are what it has beside the program and those of BaseFiles, in
	// layers of their own.
	Files []ImageFile
	// Index says that its tag names an index of several platforms.
	Index bool
}

// ImageFile is a file of an image.
type ImageFile struct {
	Path string
	// Mode is the permissions; Dir says that it is a directory.
	Mode int64
	Dir  bool
	Text string
	// UID and GID are the owner.
	UID, GID int
}

// Name is the image's name without a registry: "drydock-actor:1".
func (im *Image) Name() string { return im.Repository + ":" + im.Tag }

// The users that BaseFiles have: actor, with the group of its name and the
// supplementary group extra.
const (
	ActorUID = 1001
	ActorGID = 1001
	ExtraGID = 2001
)

// BaseFiles are what every image has beside its program.
func BaseFiles() []ImageFile {
	return []ImageFile{
		{Path: "/etc", Mode: 0o755, Dir: true},
		{Path: "/etc/passwd", Mode: 0o644, Text: "root:x:0:0:root:/root:/actor\nactor:x:1001:1001:actor:/home/actor:/actor\nnobody:x:65534:65534:nobody:/:/actor\n"},
		{Path: "/etc/group", Mode: 0o644, Text: "root:x:0:\nactor:x:1001:\nextra:x:2001:actor\nnogroup:x:65534:\n"},
		{Path: "/root", Mode: 0o700, Dir: true},
		{Path: "/tmp", Mode: 0o1777, Dir: true},
	}
}

// pathEnv is the environment of every image.
const pathEnv = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Images lists the test images. Unless they say otherwise they run "/actor run"
// as root in /.
func Images() []Image {
	list := []Image{
		{Tag: "1", Aliases: []string{"latest", "alias"}},
		{Tag: "2", Files: []ImageFile{{Path: "/etc/actor-release", Mode: 0o644, Text: "2\n"}}},
		{Tag: "layers", Files: []ImageFile{{Path: "/etc/first", Mode: 0o644, Text: "first\n"}, {Path: "/etc/second", Mode: 0o600, Text: "second\n"}, {Path: "/etc/owned", Mode: 0o640, Text: "owned\n", UID: ActorUID, GID: ExtraGID}}},
		{Tag: "index", Index: true, Labels: [][2]string{{"dev.drydock.image", "index"}}},
		{Tag: "user", User: "1000"},
		{Tag: "user-group", User: "1000:2000"},
		{Tag: "user-name", User: "actor"},
		{Tag: "user-name-group", User: "actor:extra"},
		{Tag: "user-unknown", User: "nobody-knows"},
		{Tag: "cmd", Entrypoint: []string{}, Cmd: []string{Program, "echo", "cmd"}},
		{Tag: "entrypoint", Entrypoint: []string{Program, "echo", "entrypoint"}, Cmd: []string{"cmd"}},
		{Tag: "no-command", Entrypoint: []string{}, Cmd: []string{}},
		{Tag: "dir", WorkingDir: "/srv/work", Files: []ImageFile{{Path: "/srv", Mode: 0o755, Dir: true}, {Path: "/srv/work", Mode: 0o755, Dir: true}, {Path: "/srv/work/here", Mode: 0o644, Text: "here\n"}}},
		{Tag: "dir-missing", WorkingDir: "/made/by/the/runtime"},
		{Tag: "env", Env: []string{"FROM_IMAGE=image", "OVERRIDDEN=image", "WITH_EQUALS=a=b"}},
		{Tag: "labels", Labels: [][2]string{{"dev.drydock.image", "labels"}, {"maintainer", "drydock"}}},
		{Tag: "stop", StopSignal: "SIGUSR1"},
		{Tag: "stop-quit", StopSignal: "SIGQUIT"},
		{Tag: "volume", Volumes: []string{"/image-volume"}, Files: []ImageFile{{Path: "/image-volume", Mode: 0o777, Dir: true}, {Path: "/image-volume/from-image", Mode: 0o644, Text: "from image\n"}}},
		{Repository: PauseRepository, Tag: "1", Aliases: []string{"latest"}, User: "65535:65535", Entrypoint: []string{PauseProgram}, Cmd: []string{}},
	}
	for i := range list {
		im := &list[i]
		im.Repository = cmp.Or(im.Repository, Repository)
		if im.Entrypoint == nil {
			im.Entrypoint = []string{Program}
			if im.Cmd == nil {
				im.Cmd = []string{"run"}
			}
		}
		im.WorkingDir = cmp.Or(im.WorkingDir, "/")
		im.Env = append([]string{pathEnv}, im.Env...)
	}
	return list
}

// FindImage returns the test image of a repository's last element and a tag, or
// nil.
func FindImage(repository, tag string) *Image {
	list := Images()
	for i := range list {
		im := &list[i]
		if im.Repository != repository {
			continue
		}
		if im.Tag == tag || slices.Contains(im.Aliases, tag) {
			return im
		}
	}
	return nil
}

// Trouble says how a registry treats a repository.
type Trouble struct {
	// Status, if not 0, is the HTTP status of its answers.
	Status int
	// Delay is how long an answer takes.
	Delay time.Duration
	// User and Password, if any, must be given.
	User, Password string
	// Blobs says that only blobs meet Status: the manifest is fine.
	Blobs bool
	// Corrupt says that blobs are not what their digests say.
	Corrupt bool
}

// The credentials of the repositories below "private".
const (
	PrivateUser     = "drydock"
	PrivatePassword = "anchor"
)

// TroubleOf returns the trouble that a repository's name asks for by an element
// of its path before the last: "missing" (404), "broken" (500), "forbidden"
// (403), "slow" (5 s for an answer), "private" (wants PrivateUser), "cut" (the
// manifest is there, the blobs answer 500), "corrupt". The test registry and
// the fake runtime have the same: drydock/broken/drydock-actor:1 can't be
// pulled from either.
func TroubleOf(repository string) (Trouble, bool) {
	for e := range strings.SplitSeq(path.Dir(repository), "/") {
		switch e {
		case "missing":
			return Trouble{Status: 404}, true
		case "broken":
			return Trouble{Status: 500}, true
		case "forbidden":
			return Trouble{Status: 403}, true
		case "slow":
			return Trouble{Delay: 5 * time.Second}, true
		case "private":
			return Trouble{User: PrivateUser, Password: PrivatePassword}, true
		case "cut":
			return Trouble{Status: 500, Blobs: true}, true
		case "corrupt":
			return Trouble{Corrupt: true}, true
		}
	}
	return Trouble{}, false
}
