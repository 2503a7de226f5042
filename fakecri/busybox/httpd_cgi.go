package busybox

import (
	"bytes"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// cgiPrefix is where httpd runs what it finds, instead of sending it.
const cgiPrefix = "/cgi-bin/"

// cgiHeader adds what a program sees of a request's header to its environment.
func cgiHeader(env []string, name, value string) []string {
	name = strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(name))
	switch name {
	case "AUTHORIZATION", "RANGE":
		return env
	case "CONTENT_TYPE":
		return append(env, name+"="+value)
	case "CONTENT_LENGTH":
		if value == "0" {
			return env
		}
		return append(env, name+"="+value)
	}
	return append(env, "HTTP_"+name+"="+value)
}

// cgi answers a request for a program, or tells that it is none: a path below
// /cgi-bin/, or of a directory without index.html if there is
// /cgi-bin/index.cgi.
func (s *httpServer) cgi(conn *kernel.Conn, method, target string, env []string, posted []byte) bool {
	target, query, hasQuery := strings.Cut(target, "?")
	decoded, err := url.PathUnescape(target)
	if err != nil || !strings.HasPrefix(decoded, "/") || method != "GET" && method != "HEAD" && method != "POST" {
		return false
	}
	slash := strings.HasSuffix(decoded, "/")
	if decoded = path.Clean(decoded); slash && decoded != "/" {
		decoded += "/"
	}
	script := decoded
	switch {
	case decoded == cgiPrefix:
		s.answer(conn, 403, "Forbidden", "", method != "HEAD")
		return true
	case s.directory(decoded) && !slash:
		return false
	case strings.HasPrefix(decoded, cgiPrefix):
	default:
		script = cgiPrefix + "index.cgi"
		v := s.c.view()
		_, errIndex := v.Stat(path.Join(s.root, decoded, "index.html"))
		fi, errCGI := v.Stat(s.root + script)
		if !slash || errIndex == nil || errCGI != nil || fi.Mode()&0o111 == 0 {
			return false
		}
	}
	info := ""
	for i := 1; i < len(script); i++ {
		if script[i] == '/' && !s.directory(script[:i]) {
			script, info = script[:i], script[i:]
		}
	}
	uri := decoded
	if hasQuery {
		uri += "?" + query
	}
	own := []string{
		"PATH_INFO=" + info, "REQUEST_METHOD=" + method, "REQUEST_URI=" + uri, "SCRIPT_FILENAME=" + path.Join(s.root, script),
		"SCRIPT_NAME=" + script, "QUERY_STRING=" + query, "SERVER_SOFTWARE=busybox httpd/1.35.0", "SERVER_PROTOCOL=HTTP/1.1",
		"GATEWAY_INTERFACE=CGI/1.1", "REMOTE_ADDR=[::ffff:" + conn.RemoteIP() + "]", fmt.Sprint("REMOTE_PORT=", conn.RemotePort()),
	}
	s.runCGI(conn, script, append(append(append([]string(nil), s.c.p.Env...), own...), env...), posted)
	return true
}

func (s *httpServer) directory(name string) bool {
	fi, err := s.c.view().Stat(path.Join(s.root, name))
	return err == nil && fi.IsDir()
}

// runCGI runs a program and sends what it writes. Its first header may be the
// status.
func (s *httpServer) runCGI(conn *kernel.Conn, script string, env []string, posted []byte) {
	m := s.c.p.Container().Machine()
	in, feed := m.Pipe()
	out, w := m.Pipe()
	defer out.Close()
	dir, name := path.Split(path.Join(s.root, script))
	child, err := s.c.p.Spawn(s.c.ctx, kernel.Spec{
		Path: path.Join(dir, name), Argv: []string{name}, Env: env, Dir: path.Clean(dir), FDs: []kernel.File{in, w, s.c.p.FD(2)},
	})
	_, _ = in.Close(), w.Close()
	if err != nil {
		_ = feed.Close()
		s.answer(conn, 404, "Not Found", "The requested URL was not found", true)
		return
	}
	_, _ = feed.Write(s.c.ctx, posted[:min(len(posted), maxPosted)])
	_ = feed.Close()
	var head []byte
	begun := false
	buf := make([]byte, 4096)
	for {
		n, err := out.Read(s.c.ctx, buf)
		b := buf[:n]
		if !begun {
			head = append(head, b...)
			if b, begun = cgiHead(head, err != nil); !begun {
				b = nil
			}
		}
		if _, werr := conn.Write(s.c.ctx, b); err != nil || werr != nil {
			break
		}
	}
	_ = conn.Close()
	_, _ = s.c.p.Wait(s.c.ctx, child)
}

// maxPosted is how much of a request's body a program gets, in bytes: what its
// pipe holds.
const maxPosted = 64 << 10

// cgiHead puts the status line before the first bytes of an answer, once there
// are enough of them, or no more come.
func cgiHead(head []byte, last bool) ([]byte, bool) {
	const field = "Status: "
	switch {
	case bytes.HasPrefix(head, []byte(field)):
		return append([]byte("HTTP/1.1 "), head[len(field):]...), true
	case len(head) < 4 && !(last && len(head) > 0):
		return nil, false
	case bytes.HasPrefix(head, []byte("HTTP")):
		return head, true
	}
	return append([]byte("HTTP/1.1 200 OK\r\n"), head...), true
}
