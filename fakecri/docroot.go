package fakecri

import (
	"net/http"
	"path"
)

// webRoot is where a known web server has its pages.
type webRoot struct {
	dir string
	// config are the files that somebody brings along who wants other pages.
	config []string
}

var (
	nginxRoot = webRoot{dir: "/usr/share/nginx/html", config: []string{"/etc/nginx/nginx.conf", "/etc/nginx/conf.d", "/etc/nginx/templates"}}
	httpdRoot = webRoot{dir: "/usr/local/apache2/htdocs", config: []string{"/usr/local/apache2/conf"}}
)

// serves is the behaviour of a server with one page that sends the files of its
// root instead once somebody has put any there: by a mount, or in a container
// with processes by an exec. With a configuration of one's own, which nobody
// reads here, what is not found is that page too.
func (w webRoot) serves(page string, port int, names ...string) daemonFunc {
	p := Port{Port: port, HTTP: []HTTPAnswer{{Body: page}}}
	p.answer = func(a asked) (int, string) {
		if code, body, ok := w.file(a); ok {
			return code, body
		}
		return http.StatusOK, page
	}
	return does(&Behaviour{Ports: []Port{p}}, names...)
}

// file is the answer from the root; ok is false without one.
func (w webRoot) file(a asked) (code int, body string, ok bool) {
	v := a.Files()
	if v == nil {
		return 0, "", false
	}
	if _, err := v.Stat(w.dir); err != nil {
		return 0, "", false
	}
	name := path.Join(w.dir, path.Clean("/"+a.req.URL.Path))
	st, err := v.Stat(name)
	missing := http.StatusNotFound
	if err == nil && st.IsDir() {
		name, missing = path.Join(name, "index.html"), http.StatusForbidden
	}
	data, err := v.ReadFile(name)
	if err == nil {
		return http.StatusOK, string(data), true
	}
	for _, f := range w.config {
		if _, err := v.Stat(f); err == nil {
			return 0, "", false
		}
	}
	return missing, "<html><body><h1>" + http.StatusText(missing) + "</h1></body></html>\n", true
}
