package images

import (
	"net/http"
	"path"
	"slices"

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
	p := program.Port{Port: s.Port}
	if s.Page != "" {
		p.HTTP = []program.HTTPAnswer{{Body: s.Page}}
	}
	if s.Root != "" {
		p.Answer = func(a program.Asked) (int, string) {
			if code, body, ok := s.file(a); ok {
				return code, body
			}
			return http.StatusOK, s.Page
		}
	}
	b := &program.Behaviour{Ports: []program.Port{p}}
	for _, line := range s.Says {
		b.Logs = append(b.Logs, program.LogLine{Stream: program.StderrName, Text: line})
	}
	return func(_ *runtimeapi.ContainerConfig, argv []string) *program.Behaviour {
		if slices.Contains(s.Programs, path.Base(argv[0])) {
			return b
		}
		return nil
	}
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
	for _, f := range s.Config {
		if _, err := v.Stat(f); err == nil {
			return 0, "", false
		}
	}
	return missing, "<html><body><h1>" + http.StatusText(missing) + "</h1></body></html>\n", true
}
