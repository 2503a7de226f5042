package images

import (
	"cmp"
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
)

// catalogueFiles are the images that are known, one a file: to know another is
// to add its file. A file is named after the last element of the repository's
// name, wherever the image is pulled from; with a + at its end, after what that
// begins with.
//
//go:embed catalogue/*.yaml
var catalogueFiles embed.FS

// knownImage is what is known of an image that is widely used: its
// configuration, its files and the behaviour of its server.
type knownImage struct {
	// Like is a known image that this one is but for what its own file says.
	Like string `json:"like,omitempty"`

	// Tree is the name of its files in Trees; "" means that they are not known.
	Tree string `json:"files,omitempty"`
	// Closed says that it has no other commands than those of its tree.
	Closed bool `json:"closed,omitempty"`
	// OneImageOfAllTags says that a tag makes no difference.
	OneImageOfAllTags bool `json:"oneImageOfAllTags,omitempty"`

	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
	Env        []string `json:"env,omitempty"` // default: DefaultPath
	User       string   `json:"user,omitempty"`
	Dir        string   `json:"dir,omitempty"`
	StopSignal int      `json:"stopSignal,omitempty"`

	// Server is what it serves, Behaves the name of a behaviour that takes more
	// than that to say; Client is a program of its that probes run.
	Server  *server `json:"server,omitempty"`
	Behaves string  `json:"behaves,omitempty"`
	Client  *client `json:"client,omitempty"`

	// Daemon says what argv does that is not interpreted; nil for nothing known.
	Daemon daemonFunc `json:"-"`
}

// client is what a well-known client of a database says when all is well, for
// probes that look at it.
type client struct {
	Command string `json:"command"`
	// Arg is one of its arguments, compared without case; "" for whatever they are.
	Arg    string `json:"arg,omitempty"`
	Output string `json:"output"`
}

// daemonFunc says what a command line does in a container of that configuration,
// nil if it is none of the image's server.
type daemonFunc func(config *runtimeapi.ContainerConfig, argv []string) *program.Behaviour

// behaviours are those that files name.
var behaviours = map[string]daemonFunc{"agnhost": agnhost, "nonewprivs": nonewprivs, "pause": pauses}

// DefaultPath is what containerd gives to a container whose image says none.
const DefaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// catalogue are the known images. One that several loops share is complete, so
// that nobody writes to it any more; else each file is read when it is asked for.
type catalogue struct {
	names  []string // of the files, sorted
	images map[string]*knownImage
}

// newCatalogue knows the names of the files and has read none.
func newCatalogue() *catalogue {
	c := &catalogue{images: map[string]*knownImage{}}
	files, _ := catalogueFiles.ReadDir("catalogue")
	for _, f := range files {
		c.names = append(c.names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	return c
}

// all are the known images in the order of their files.
func (c *catalogue) all() []*knownImage {
	out := make([]*knownImage, len(c.names))
	for i, name := range c.names {
		out[i] = c.image(name)
	}
	return out
}

// image is a file's. What is wrong in one is a mistake of this package's, which
// its tests find.
func (c *catalogue) image(name string) *knownImage {
	if k := c.images[name]; k != nil {
		return k
	}
	k, err := c.read(name)
	if err != nil {
		panic("fakecri: the catalogue of images: " + name + ": " + err.Error())
	}
	c.images[name] = k
	return k
}

// read reads a file, over what it is like if it says so.
func (c *catalogue) read(name string) (*knownImage, error) {
	text, err := catalogueFiles.ReadFile("catalogue/" + name + ".yaml")
	if err != nil {
		return nil, err
	}
	k := &knownImage{}
	if err := yaml.UnmarshalStrict(text, k); err != nil {
		return nil, err
	}
	if k.Like != "" { // once more, over that
		*k = *c.image(k.Like)
		if k.Server != nil {
			k.Server = new(*k.Server)
		}
		if err := yaml.UnmarshalStrict(text, k); err != nil {
			return nil, err
		}
	}
	if k.Env == nil {
		k.Env = []string{DefaultPath}
	}
	switch {
	case k.Behaves != "":
		if k.Daemon = behaviours[k.Behaves]; k.Daemon == nil {
			return nil, fmt.Errorf("no behaviour %q", k.Behaves)
		}
	case k.Server != nil:
		if k.Server.Programs == nil {
			k.Server.Programs = []string{path.Base(k.Cmd[0])}
		}
		k.Daemon = k.Server.daemon()
	}
	return k, nil
}

// find finds an image by the last element of its repository's name, nil if it
// is not known.
func (c *catalogue) find(repository string) *knownImage {
	name, best := path.Base(repository), ""
	for _, n := range c.names {
		begin, begins := strings.CutSuffix(n, "+")
		if n == name {
			return c.image(n)
		}
		if begins && len(n) > len(best) && strings.HasPrefix(name, begin) {
			best = n
		}
	}
	if best == "" {
		return nil
	}
	return c.image(best)
}

// ClientAnswer is what a well-known client says when all is well, "" of any
// other command.
func (st *Store) ClientAnswer(argv []string) string {
	for _, k := range st.catalogue.all() {
		c := k.Client
		if c != nil && len(argv) > 0 && path.Base(argv[0]) == c.Command &&
			(c.Arg == "" || slices.ContainsFunc(argv[1:], func(s string) bool { return strings.EqualFold(s, c.Arg) })) {
			return c.Output
		}
	}
	return ""
}

// Title is how a known server shows in the process listing once it has begun,
// and where it writes the number of its process; ok is false of any other.
func (st *Store) Title(argv []string) (title, pidFile string, ok bool) {
	if len(argv) > 1 && path.Base(argv[0]) == "docker-entrypoint.sh" {
		argv = argv[1:]
	}
	for _, k := range st.catalogue.all() {
		if s := k.Server; s != nil && s.Title != "" && len(argv) > 0 && path.Base(argv[0]) == s.Programs[0] {
			return s.Title + strings.Join(argv, " "), s.PIDFile, true
		}
	}
	return "", "", false
}

// silent runs until it is stopped and listens nowhere.
func silent() *program.Behaviour { return &program.Behaviour{Ports: []program.Port{}} }

// pauses is the program of sandboxes.
func pauses(_ *runtimeapi.ContainerConfig, argv []string) *program.Behaviour {
	if argv[0] == "/pause" {
		return silent()
	}
	return nil
}

// nonewprivs is a setuid program that says who it has become.
func nonewprivs(config *runtimeapi.ContainerConfig, argv []string) *program.Behaviour {
	if path.Base(argv[0]) != "nnp" {
		return nil
	}
	uid := "0"
	if config.GetLinux().GetSecurityContext().GetNoNewPrivs() {
		uid = "1000"
	}
	return &program.Behaviour{RunFor: program.Millis(20, 20), Ports: []program.Port{}, Logs: []program.LogLine{{Text: "Effective uid: " + uid}}}
}

// adopt fills in what a catalogue's entry leaves open of a known image.
func (im *Image) adopt(k *knownImage) {
	if k == nil {
		return
	}
	if im.Entrypoint == nil && im.Cmd == nil {
		im.Entrypoint, im.Cmd = k.Entrypoint, k.Cmd
	}
	if im.Env == nil {
		im.Env = k.Env
	}
	im.User = cmp.Or(im.User, k.User)
	im.WorkingDir = cmp.Or(im.WorkingDir, k.Dir)
	im.StopSignal = cmp.Or(im.StopSignal, k.StopSignal)
}
