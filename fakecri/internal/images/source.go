package images

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"
)

// This file is where servers are told which ports to listen on: arguments, variables
// and files.

// Start is a command line as it begins to run, with what the program can look at.
type Start struct {
	Config *runtimeapi.ContainerConfig
	Argv   []string
	// Env makes the environment, "NAME=value".
	Env func() []string
	// Files are those that somebody has brought along, with mounts or otherwise; nil: none.
	Files Files
}

// Files are looked at by those who begin.
type Files interface {
	ReadFile(name string) ([]byte, error)
	// Names lists a directory.
	Names(dir string) []string
}

// variable is the value of an environment variable, "" without one.
func (st *Start) variable(name string) string {
	if st.Env == nil {
		return ""
	}
	value := ""
	for _, e := range st.Env() {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// brought is the text of a file that somebody brought along, nil without one.
func (st *Start) brought(name string) *string {
	if st.Files == nil {
		return nil
	}
	data, err := st.Files.ReadFile(name)
	if err != nil {
		return nil
	}
	return new(string(data))
}

// hides reports whether a mount has taken the place of a file of the image.
func (st *Start) hides(file string) bool {
	return slices.ContainsFunc(st.Config.GetMounts(), func(m *runtimeapi.Mount) bool {
		p := path.Clean(m.ContainerPath)
		return p == file || strings.HasPrefix(file, p+"/")
	})
}

// option is the value of an option, in either spelling and glued to a letter. The last
// counts.
func (st *Start) option(names []string) (value string, ok bool) {
	args := st.Argv[1:]
	for i, a := range args {
		for _, name := range names {
			if v, found := strings.CutPrefix(a, name+"="); found {
				value, ok = v, true
			} else if a == name && i+1 < len(args) {
				value, ok = args[i+1], true
			} else if len(name) == 2 && strings.HasPrefix(a, name) && len(a) > 2 {
				value, ok = a[2:], true
			}
		}
	}
	return value, ok
}

// source is a place that may say ports: an option of the command line, a variable, or
// files.
type source struct {
	Flag []string `json:"flag,omitempty"`
	Env  []string `json:"env,omitempty"`  // the first that is set counts
	Line bool     `json:"line,omitempty"` // the whole command line
	// Files are paths, which may be patterns of what a directory holds, or directories;
	// one that begins with - is an option whose value is the path, 1 the first argument
	// if it is no option. The first that is there counts, with what it includes.
	Files []string `json:"files,omitempty"`
	// Match finds the ports in the text: its group is a number, or a text with numbers
	// after colons; default: what a value ends with. YAML are paths of the fields, as in a/*/b, in whose values it is to find them.
	Match string   `json:"match,omitempty"`
	YAML  []string `json:"yaml,omitempty"`
	// Include finds in a file's text the files that it includes. Image are texts of the
	// image's own files, as far as they count and are not hidden. Templates is a
	// directory whose files X.template are written to the directory Rendered as X, with
	// variables filled in.
	Include   string            `json:"include,omitempty"`
	Image     map[string]string `json:"image,omitempty"`
	Templates string            `json:"templates,omitempty"`
	Rendered  string            `json:"rendered,omitempty"`

	match, include *regexp.Regexp
}

// endOfValue finds the port that an address ends with.
const endOfValue = `(?:^|:)(\d+)(?:/tcp)?/?$`

var comment = regexp.MustCompile(`(?m)(^|\s)#.*$`)

// compile makes the source's expressions.
func (s *source) compile() error {
	text := s.Match
	if text == "" {
		text = endOfValue
	}
	var err error
	if s.match, err = regexp.Compile(text); err != nil {
		return err
	}
	if s.match.NumSubexp() != 1 {
		return fmt.Errorf("%s has no group for the port", text)
	}
	if s.Include != "" {
		s.include, err = regexp.Compile(s.Include)
	}
	return err
}

// numbers are the port's numbers; those without a start are the usual ones.
func (p *port) numbers(st *Start) []int {
	if p.when != nil && (st == nil || !p.when.MatchString(strings.Join(st.Argv, " "))) {
		return nil
	}
	if st != nil {
		for i := range p.From {
			if said := p.From[i].ports(st); len(said) > 0 {
				return said
			}
		}
	}
	if p.Port == 0 {
		return nil
	}
	return append([]int{p.Port}, p.Also...)
}

// ports are what the source says.
func (s *source) ports(st *Start) []int {
	if v, ok := st.option(s.Flag); ok {
		return s.find(v)
	}
	if s.Line {
		return s.find(strings.Join(st.Argv, " "))
	}
	for _, name := range s.Env {
		if v := st.variable(name); v != "" {
			return s.find(v)
		}
	}
	var out []int
	for _, text := range s.texts(st) {
		if s.YAML == nil {
			out = append(out, s.find(comment.ReplaceAllString(text, ""))...)
			continue
		}
		for _, v := range fields(text, s.YAML) {
			out = append(out, s.find(v)...)
		}
	}
	return out
}

// find finds ports in a text.
func (s *source) find(text string) []int {
	var out []int
	add := func(number string) {
		if n, err := strconv.Atoi(number); err == nil && n > 0 && n < 65536 {
			out = append(out, n)
		}
	}
	for _, m := range s.match.FindAllStringSubmatch(text, -1) {
		if strings.Trim(m[1], "0123456789") == "" {
			add(m[1])
			continue
		}
		for _, x := range afterColon.FindAllStringSubmatch(m[1], -1) {
			add(x[1])
		}
	}
	return out
}

var afterColon = regexp.MustCompile(`:(\d+)`)

// texts are the texts of the source's files.
func (s *source) texts(st *Start) []string {
	if st.Files == nil {
		return nil
	}
	for _, f := range s.Files {
		switch {
		case f == "1":
			if f = ""; len(st.Argv) > 1 && !strings.HasPrefix(st.Argv[1], "-") {
				f = st.Argv[1]
			}
		case f[0] == '-':
			f, _ = st.option([]string{f})
		}
		if f == "" {
			continue
		}
		if out := s.read(st, f); len(out) > 0 {
			return out
		}
	}
	return nil
}

// maxIncluded is how many files are read at most.
const maxIncluded = 100

// read reads a file, or several, and what they include.
func (s *source) read(st *Start, first string) []string {
	var out []string
	names, read := []string{first}, map[string]bool{}
	for len(names) > 0 && len(read) < maxIncluded {
		name := names[0]
		names = names[1:]
		if read[name] {
			continue
		}
		read[name] = true
		if strings.Contains(path.Base(name), "*") {
			names = append(names, s.list(st, name)...)
			continue
		}
		text := s.text(st, name)
		if text == "" {
			if name == first {
				names = append(names, s.list(st, name+"/*")...)
			}
			continue
		}
		out = append(out, text)
		if s.include == nil {
			continue
		}
		for _, m := range s.include.FindAllStringSubmatch(comment.ReplaceAllString(text, ""), -1) {
			if !path.IsAbs(m[1]) {
				m[1] = path.Join(path.Dir(first), m[1])
			}
			names = append(names, m[1])
		}
	}
	return out
}

// text is a file's: what is made of a template, what was brought along, else the
// image's; "" without one.
func (s *source) text(st *Start, name string) string {
	if s.Templates != "" && path.Dir(name) == s.Rendered {
		if t := st.brought(path.Join(s.Templates, path.Base(name)+".template")); t != nil {
			return os.Expand(*t, st.variable)
		}
	}
	if t := st.brought(name); t != nil {
		return *t
	}
	if st.hides(name) {
		return ""
	}
	return s.Image[name]
}

// list are the files that a pattern matches, sorted.
func (s *source) list(st *Start, pattern string) []string {
	var out []string
	add := func(name string) {
		if ok, _ := path.Match(pattern, name); ok && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, n := range st.Files.Names(path.Dir(pattern)) {
		add(path.Join(path.Dir(pattern), n))
	}
	if s.Templates != "" && path.Dir(pattern) == s.Rendered {
		for _, n := range st.Files.Names(s.Templates) {
			if name, ok := strings.CutSuffix(n, ".template"); ok {
				add(path.Join(s.Rendered, name))
			}
		}
	}
	for name := range s.Image { //drydock:unordered sorted below
		add(name)
	}
	slices.Sort(out)
	return out
}

// fields are the values at paths of a YAML document, as text. A path has names, and * for
// each item of a list or field of an object.
func fields(text string, paths []string) []string {
	var doc any
	if yaml.Unmarshal([]byte(text), &doc) != nil {
		return nil
	}
	var out []string
	for _, p := range paths {
		found := []any{doc}
		for _, name := range strings.Split(p, "/") {
			var next []any
			for _, v := range found {
				switch v := v.(type) {
				case []any:
					if name == "*" {
						next = append(next, v...)
					}
				case map[string]any:
					if name != "*" {
						if x, ok := v[name]; ok {
							next = append(next, x)
						}
						continue
					}
					keys := make([]string, 0, len(v))
					for k := range v { //drydock:unordered sorted below
						keys = append(keys, k)
					}
					slices.Sort(keys)
					for _, k := range keys {
						next = append(next, v[k])
					}
				}
			}
			found = next
		}
		for _, v := range found {
			switch v := v.(type) {
			case string:
				out = append(out, v)
			case float64:
				out = append(out, strconv.FormatFloat(v, 'f', -1, 64))
			}
		}
	}
	return out
}
