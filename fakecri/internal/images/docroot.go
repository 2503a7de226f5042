package images

import (
	"net/http"
	"path"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
)

// WebRoot is where a known web server has its pages.
type WebRoot struct {
	Dir string
	// Config are the files that somebody brings along who wants other pages.
	Config []string
}

var (
	NginxRoot = WebRoot{Dir: "/usr/share/nginx/html", Config: []string{"/etc/nginx/nginx.conf", "/etc/nginx/conf.d", "/etc/nginx/templates"}}
	HttpdRoot = WebRoot{Dir: "/usr/local/apache2/htdocs", Config: []string{"/usr/local/apache2/conf"}}
)

// serves is the behaviour of a server with one page that sends the files of its
// root instead once somebody has put any there: by a mount, or in a container
// with processes by an exec. With a configuration of one's own, which nobody
// reads here, what is not found is that page too.
func (w WebRoot) serves(page string, port int, names ...string) daemonFunc {
	p := program.Port{Port: port, HTTP: []program.HTTPAnswer{{Body: page}}}
	p.Answer = func(a program.Asked) (int, string) {
		if code, body, ok := w.file(a); ok {
			return code, body
		}
		return http.StatusOK, page
	}
	return does(&program.Behaviour{Ports: []program.Port{p}}, names...)
}

// file is the answer from the root; ok is false without one.
func (w WebRoot) file(a program.Asked) (code int, body string, ok bool) {
	v := a.Files()
	if v == nil {
		return 0, "", false
	}
	if _, err := v.Stat(w.Dir); err != nil {
		return 0, "", false
	}
	name := path.Join(w.Dir, path.Clean("/"+a.Req.URL.Path))
	st, err := v.Stat(name)
	missing := http.StatusNotFound
	if err == nil && st.IsDir() {
		name, missing = path.Join(name, "index.html"), http.StatusForbidden
	}
	data, err := v.ReadFile(name)
	if err == nil {
		return http.StatusOK, string(data), true
	}
	for _, f := range w.Config {
		if _, err := v.Stat(f); err == nil {
			return 0, "", false
		}
	}
	return missing, "<html><body><h1>" + http.StatusText(missing) + "</h1></body></html>\n", true
}
