package images

import (
	"net/http"
	"path"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
)

// server is a server with one page, or none, on one port.
type server struct {
	Programs []string `json:"programs,omitempty"` // by name; default: that of the image's command
	Port     int      `json:"port"`
	Page     string   `json:"page,omitempty"`
	// Root is the directory whose files it sends in the page's stead, once
	// somebody has put any there: by a mount, or in a container with processes by
	// an exec. Config are the files that somebody brings along who wants other
	// pages; they are not read here, and what is not found is the page then.
	Root   string   `json:"root,omitempty"`
	Config []string `json:"config,omitempty"`
	// Says are lines that it begins with, on stderr.
	Says []string `json:"says,omitempty"`
	// Title is how the first program shows in the process listing, before its
	// arguments, and PIDFile where it writes the number of its process.
	Title   string `json:"title,omitempty"`
	PIDFile string `json:"pidFile,omitempty"`
}

// daemon is what the server's programs do. Those who share it don't write to it.
func (s *server) daemon() daemonFunc {
	// Of a server that sends files only what its image has is there, unless somebody
	// brings pages or a configuration along.
	own, brought := s.behaviour(s.Root != ""), s.behaviour(false)
	return func(config *runtimeapi.ContainerConfig, argv []string) *program.Behaviour {
		switch {
		case !slices.Contains(s.Programs, path.Base(argv[0])):
			return nil
		case slices.ContainsFunc(config.GetMounts(), func(m *runtimeapi.Mount) bool { return s.concerns(m.ContainerPath) }):
			return brought
		}
		return own
	}
}

// concerns reports whether something that is mounted there may change what is served.
func (s *server) concerns(mount string) bool {
	return slices.ContainsFunc(append([]string{s.Root}, s.Config...), func(p string) bool {
		return p != "" && (mount == p || strings.HasPrefix(mount, p+"/") || strings.HasPrefix(p, mount+"/"))
	})
}

// behaviour is what the programs do; strict has pages beside the first missing.
func (s *server) behaviour(strict bool) *program.Behaviour {
	p := program.Port{Port: s.Port}
	if s.Page != "" {
		p.HTTP = []program.HTTPAnswer{{Body: s.Page}}
	}
	if s.Root != "" {
		p.Answer = func(a program.Asked) (int, string) {
			if code, body, ok := s.file(a); ok {
				return code, body
			}
			if name := a.Req.URL.Path; strict && name != "/" && name != "" && name != "/index.html" && !s.configured(a.Files()) {
				return http.StatusNotFound, missingPage(http.StatusNotFound)
			}
			return http.StatusOK, s.Page
		}
	}
	b := &program.Behaviour{Ports: []program.Port{p}}
	for _, line := range s.Says {
		b.Logs = append(b.Logs, program.LogLine{Stream: program.StderrName, Text: line})
	}
	return b
}

// missingPage is what a server says with a status of its own.
func missingPage(code int) string {
	return "<html><body><h1>" + http.StatusText(code) + "</h1></body></html>\n"
}

// file is the answer from the root; ok is false without one.
func (s *server) file(a program.Asked) (code int, body string, ok bool) {
	v := a.Files()
	if v == nil {
		return 0, "", false
	}
	if _, err := v.Stat(s.Root); err != nil {
		return 0, "", false
	}
	name := path.Join(s.Root, path.Clean("/"+a.Req.URL.Path))
	st, err := v.Stat(name)
	missing := http.StatusNotFound
	if err == nil && st.IsDir() {
		name, missing = path.Join(name, "index.html"), http.StatusForbidden
	}
	data, err := v.ReadFile(name)
	if err == nil {
		return http.StatusOK, string(data), true
	}
	if s.configured(v) {
		return 0, "", false
	}
	return missing, missingPage(missing), true
}

// configured reports whether a container has written a configuration of its own, which
// nobody here reads.
func (s *server) configured(v program.Files) bool {
	return v != nil && slices.ContainsFunc(s.Config, func(f string) bool {
		_, err := v.Stat(f)
		return err == nil
	})
}
