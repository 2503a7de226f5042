package images

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/ground/loop"
)

// catalogueFiles are the images that are known, one a file: to know another is
// to add its file. A file is named after the last element of the repository's
// name, wherever the image is pulled from; with a + at its end, after what that
// begins with; with a point, after the last two elements.
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
	// than that to say; Tools are programs of its that probes and hooks run.
	Server  *server `json:"server,omitempty"`
	Behaves string  `json:"behaves,omitempty"`
	Tools   []tool  `json:"tools,omitempty"`
	// Assumes is what of the above nobody has measured, for the documents; Group names
	// the row there of images that are alike.
	Assumes string `json:"assumes,omitempty"`
	Group   string `json:"group,omitempty"`

	// Daemon says what a command line does that is not interpreted; nil for nothing known.
	Daemon daemonFunc `json:"-"`
}

// daemonFunc says what a command line does, nil if it is none of the image's server.
type daemonFunc func(st *Start) *program.Behaviour

// behaviours are those that files name.
var behaviours = map[string]daemonFunc{"agnhost": agnhost, "nonewprivs": nonewprivs, "pause": pauses}

// DefaultPath is what containerd gives to a container whose image says none.
const DefaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// catalogue are the known images. Each file is read when it is asked for, by any of
// the loops that share the catalogue.
type catalogue struct {
	names  []string // of the files, sorted
	images []loop.Shared[knownImage]
}

// newCatalogue knows the names of the files and has read none.
func newCatalogue() *catalogue {
	c := &catalogue{}
	files, _ := catalogueFiles.ReadDir("catalogue")
	for _, f := range files {
		c.names = append(c.names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	slices.Sort(c.names)
	c.images = make([]loop.Shared[knownImage], len(c.names))
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
	i, found := slices.BinarySearch(c.names, name)
	if !found {
		panic("fakecri: the catalogue of images has no " + name)
	}
	return c.images[i].Get(func() *knownImage {
		k, err := c.read(name)
		if err != nil {
			panic("fakecri: the catalogue of images: " + name + ": " + err.Error())
		}
		return k
	})
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
		k = &knownImage{}
		merged, err := c.merged(name)
		if err == nil {
			text, err = json.Marshal(merged)
		}
		if err == nil {
			err = yaml.UnmarshalStrict(text, k)
		}
		if err != nil {
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
		if k.Server.Programs == nil && len(k.Cmd) > 0 {
			k.Server.Programs = []string{path.Base(k.Cmd[0])}
		}
		if err := k.Server.check(); err != nil {
			return nil, err
		}
		k.Daemon = k.Server.daemon()
	}
	return k, nil
}

// merged is a file's document over that of the file that it is like, object by object.
func (c *catalogue) merged(name string) (map[string]any, error) {
	text, err := catalogueFiles.ReadFile("catalogue/" + name + ".yaml")
	if err != nil {
		return nil, err
	}
	own := map[string]any{}
	if err := yaml.Unmarshal(text, &own); err != nil {
		return nil, err
	}
	like, ok := own["like"].(string)
	if !ok {
		return own, nil
	}
	base, err := c.merged(like)
	if err != nil {
		return nil, err
	}
	delete(base, "assumes")
	delete(base, "group")
	mergeInto(base, own)
	return base, nil
}

// mergeInto puts the fields of one document into another.
func mergeInto(to, from map[string]any) {
	for key, v := range from { //drydock:unordered each field by itself
		a, both := to[key].(map[string]any)
		if b, ok := v.(map[string]any); ok && both {
			mergeInto(a, b)
			continue
		}
		to[key] = v
	}
}

// find finds an image by the last two elements of its repository's name, with a point
// between them, or by the last; nil if it is not known.
func (c *catalogue) find(repository string) *knownImage {
	last := path.Base(repository)
	if k := c.named(path.Base(path.Dir(repository)) + "." + last); k != nil {
		return k
	}
	return c.named(last)
}

// named finds an image by a name, or what that begins with.
func (c *catalogue) named(name string) *knownImage {
	best := ""
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

// Title is how a known server shows in the process listing once it has begun,
// and where it writes the number of its process; ok is false of any other.
func (st *Store) Title(argv []string) (title, pidFile string, ok bool) {
	for _, k := range st.catalogue.all() {
		if s := k.Server; s != nil && s.Title != "" && len(argv) > 0 {
			if argv := s.unwrapped(argv); path.Base(argv[0]) == s.Programs[0] {
				return s.Title + strings.Join(argv, " "), s.PIDFile, true
			}
		}
	}
	return "", "", false
}

// Unwrapped is a command line of the image without its entrypoint's script, if that
// runs other commands as they are.
func (src *Source) Unwrapped(argv []string) []string {
	if k := src.Known; k != nil && k.Server != nil && len(argv) > 0 {
		return k.Server.unwrapped(argv)
	}
	return argv
}

// Runs reports whether a command line is one of the image's own program, whatever that
// does.
func (src *Source) Runs(argv []string) bool {
	k := src.Known
	return k != nil && k.Server != nil && k.Server.command(argv) != nil
}

// silent runs until it is stopped and listens nowhere.
func silent() *program.Behaviour { return &program.Behaviour{Ports: []program.Port{}} }

// pauses is the program of sandboxes.
func pauses(st *Start) *program.Behaviour {
	if st.Argv[0] == "/pause" {
		return silent()
	}
	return nil
}

// nonewprivs is a setuid program that says who it has become.
func nonewprivs(st *Start) *program.Behaviour {
	if path.Base(st.Argv[0]) != "nnp" {
		return nil
	}
	uid := "0"
	if st.Config.GetLinux().GetSecurityContext().GetNoNewPrivs() {
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
