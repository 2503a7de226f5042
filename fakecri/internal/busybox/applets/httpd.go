package applets

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Httpd is httpd: files below -h, GET and HEAD, and CGI programs. What
// BusyBox's has and this has not: the configuration file (-c is read and not
// looked at), authentication (-r, -m), ranges, gzip, and -i from inetd. A
// directory is answered with its index.html, one without a slash at its end
// with a redirection to it.
//
// Without -f it goes to the background: the parent returns once the port is
// open, which is why scripts may ask at once. Each connection is a task of the
// daemon's, with no process of its own as long as no program is run; the real
// one forks.
func Httpd() applet.Applet {
	return applet.New(runHttpd, "httpd", "[-fv] [-p [IP:]PORT] [-h HOME] | -d STRING | -e STRING")
}

func runHttpd(c *applet.Call) int {
	o := c.Getopt("ifvp:h:u:r:c:d:e:m:")
	switch {
	case o.Has('d'):
		text, err := url.QueryUnescape(o.Str('d'))
		// A broken escape is printed as it stands.
		if err != nil {
			text = o.Str('d')
		}
		c.Print(text)
		return 0
	case o.Has('e'):
		for _, b := range []byte(o.Str('e')) {
			// -e encodes for HTML, -d decodes from a URL: BusyBox's pair is
			// that odd.
			if applet.IsWord(b) && b != '_' {
				c.Print(string(rune(b)))
			} else {
				c.Printf("&#%d;", b)
			}
		}
		return 0
	}
	port := 80
	if o.Has('p') {
		s := o.Str('p')
		// An address before the colon is not looked at: listeners have a port and no
		// more.
		number := s[strings.LastIndexByte(s, ':')+1:]
		n, ok := applet.ParseUint(number)
		if !ok || n > 65535 {
			// What is no number is taken for an address, and reported as one.
			if strings.Contains(s, ":") {
				c.Die("bad port '%s'", number)
			}
			c.Die("bad address '%s'", s)
		}
		port = n
	}
	// A wrong home is reported before the port is opened.
	if o.Has('h') {
		if err := c.P.Chdir(o.Str('h')); err != nil {
			c.Die("can't change directory to '%s': %s", o.Str('h'), applet.Strerror(err))
		}
	}
	s := &httpServer{c: c, root: c.P.Dir, verbose: o.Has('v')}
	if o.Has('f') {
		l, err := c.P.Listen(c.Ctx, port)
		if err != nil {
			c.Die("bind: %s", applet.Strerror(err))
		}
		return s.serve(l)
	}
	// The port is tried here first, so that one in use is an error of the parent;
	// the daemon opens its own.
	probe, err := c.P.Listen(c.Ctx, port)
	if err != nil {
		c.Die("bind: %s", applet.Strerror(err))
	}
	_ = probe.Close()
	null := c.P.Container().Machine().Null()
	ready := false
	c.P.Fork("httpd", []kernel.File{null, null, null}, func(ctx context.Context, p *kernel.Process) int {
		d := c.Under(ctx, p)
		l, err := p.Listen(ctx, port)
		// Even after an error: the parent need not wait for a daemon that has failed.
		ready = true
		if err != nil {
			return 1
		}
		return (&httpServer{c: d, root: s.root}).serve(l)
	})
	_ = null.Close()
	// The parent waits for the daemon, for 10 ms of virtual time at most.
	for i := 0; i < 100 && !ready; i++ {
		_ = c.P.Step(c.Ctx, 100*time.Microsecond)
	}
	return 0
}

// httpServer serves the files below root, one connection per task.
type httpServer struct {
	c       *applet.Call
	root    string
	verbose bool
}

// serve accepts connections until the process dies. A signal that is caught
// does not end it.
func (s *httpServer) serve(l *kernel.Listener) int {
	for {
		conn, err := l.Accept(s.c.Ctx)
		if errors.Is(err, kernel.ErrInterrupted) {
			continue
		}
		if err != nil {
			return 1
		}
		s.c.P.Group().Go("httpd connection", func(ctx context.Context) {
			// A connection has a context of its own, and shares the process.
			sub := *s.c
			sub.Ctx = ctx
			(&httpServer{&sub, s.root, s.verbose}).connection(conn)
		})
	}
}

// connection answers one request and closes: there is no keep-alive. A header
// is bounded, like the body of a POST, by 1 MiB.
func (s *httpServer) connection(conn *kernel.Conn) {
	defer conn.Close()
	r := bufio.NewReader(io.LimitReader(s.c.Stream(conn), 1<<20))
	line, err := r.ReadString('\n')
	if err != nil {
		return
	}
	length := int64(0)
	var env []string
	for {
		h, err := r.ReadString('\n')
		// The empty line ends the header; so does the end of the connection.
		if h = strings.TrimRight(h, "\r\n"); h == "" || err != nil {
			break
		}
		if k, v, ok := strings.Cut(h, ":"); ok {
			if v = strings.TrimSpace(v); strings.EqualFold(k, "Content-Length") {
				_, _ = fmt.Sscan(v, &length)
			}
			env = cgiHeader(env, k, v)
		}
	}
	var posted bytes.Buffer
	// A body that breaks off counts as far as it came.
	_, _ = io.CopyN(&posted, r, min(length, 1<<20))
	f := strings.Fields(line)
	if len(f) < 2 {
		s.answer(conn, 400, "Bad Request", "Unsupported method", true)
		return
	}
	// Programs come first, since they take a POST, which files don't.
	if s.cgi(conn, f[0], f[1], env, posted.Bytes()) {
		return
	}
	if f[0] != "GET" && f[0] != "HEAD" {
		s.answer(conn, 501, "Not Implemented", "The requested method is not recognized", true)
		return
	}
	s.file(conn, f[1], f[0] == "GET")
}

// file sends a file, or says why not. Paths are cleaned before they are joined
// to the root, so that none leads out of it.
func (s *httpServer) file(conn *kernel.Conn, target string, body bool) {
	target, _, _ = strings.Cut(target, "?")
	decoded, err := url.PathUnescape(target)
	if err != nil || !strings.HasPrefix(decoded, "/") {
		s.answer(conn, 400, "Bad Request", "Unsupported method", body)
		return
	}
	name := path.Join(s.root, path.Clean(decoded))
	v := s.c.View()
	fi, err := v.Stat(name)
	if err == nil && fi.IsDir() {
		// Without the slash the relative links of the index would lead elsewhere.
		if !strings.HasSuffix(decoded, "/") {
			head := "HTTP/1.1 302 Found\r\n" + s.date() + "Connection: close\r\nContent-type: text/html\r\nLocation: " + decoded + "/\r\n\r\n"
			_, _ = conn.Write(s.c.Ctx, []byte(head))
			return
		}
		name = path.Join(name, "index.html")
		fi, err = v.Stat(name)
	}
	// A FIFO or a device might never end, so neither is sent.
	if err != nil || !fi.Mode().IsRegular() {
		s.answer(conn, 404, "Not Found", "The requested URL was not found", body)
		return
	}
	f, err := v.Open(name, os.O_RDONLY, 0)
	if err != nil {
		s.answer(conn, 404, "Not Found", "The requested URL was not found", body)
		return
	}
	defer f.Close()
	head := "HTTP/1.1 200 OK\r\n" + s.date() + "Connection: close\r\nContent-type: " + mimeType(name) + "\r\nAccept-Ranges: bytes\r\nLast-Modified: " +
		fi.ModTime().UTC().Format(httpTime) + fmt.Sprintf("\r\nETag: \"%x-%x\"\r\nContent-Length: %d\r\n\r\n", fi.ModTime().Unix(), fi.Size(), fi.Size())
	if _, err := conn.Write(s.c.Ctx, []byte(head)); err == nil && body {
		// The header is out: an error can only cut the body short.
		_ = s.c.Pour(conn, f, -1)
	}
}

// httpTime is RFC 1123's format with GMT, as HTTP wants it.
const httpTime = "Mon, 02 Jan 2006 15:04:05 GMT"

// date is the header of that name, by the loop's clock.
func (s *httpServer) date() string {
	return "Date: " + s.c.P.Now().UTC().Format(httpTime) + "\r\n"
}

// answer sends a page that BusyBox makes up for a status.
func (s *httpServer) answer(conn *kernel.Conn, status int, title, text string, body bool) {
	out := fmt.Sprintf("HTTP/1.1 %d %s\r\n%sConnection: close\r\nContent-type: text/html\r\n\r\n", status, title, s.date())
	if body {
		out += fmt.Sprintf("<HTML><HEAD><TITLE>%d %s</TITLE></HEAD>\n<BODY><H1>%d %s</H1>\n%s\n</BODY></HTML>\n", status, title, status, title, text)
	}
	_, _ = conn.Write(s.c.Ctx, []byte(out))
}

// mimeType is by the name's extension, of BusyBox's list; what is not in it is
// a stream of bytes.
func mimeType(name string) string {
	switch path.Ext(name) {
	case ".html", ".htm":
		return "text/html"
	case ".txt", ".h", ".c", ".cc", ".cpp":
		return "text/plain"
	case ".css":
		return "text/css"
	case ".js":
		return "application/javascript"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	case ".png":
		return "image/png"
	case ".svg":
		return "image/svg+xml"
	}
	return "application/octet-stream"
}

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
	// RFC 3875 wants credentials kept from programs. Ranges are not built.
	case "AUTHORIZATION", "RANGE":
		return env
	// These two go without HTTP_, by RFC 3875.
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

// cgi answers a request for a program, or reports that it is none: a path below
// /cgi-bin/, or of a directory without index.html if there is
// /cgi-bin/index.cgi.
func (s *httpServer) cgi(conn *kernel.Conn, method, target string, env []string, posted []byte) bool {
	target, query, hasQuery := strings.Cut(target, "?")
	decoded, err := url.PathUnescape(target)
	if err != nil || !strings.HasPrefix(decoded, "/") || method != "GET" && method != "HEAD" && method != "POST" {
		return false
	}
	slash := strings.HasSuffix(decoded, "/")
	// Clean takes the slash off, by which a directory is known.
	if decoded = path.Clean(decoded); slash && decoded != "/" {
		decoded += "/"
	}
	script := decoded
	switch {
	// The directory of programs is never listed.
	case decoded == cgiPrefix:
		s.answer(conn, 403, "Forbidden", "", method != "HEAD")
		return true
	case s.directory(decoded) && !slash:
		return false
	case strings.HasPrefix(decoded, cgiPrefix):
	default:
		script = cgiPrefix + "index.cgi"
		v := s.c.View()
		// A directory's own index comes before the program that makes one.
		_, errIndex := v.Stat(path.Join(s.root, decoded, "index.html"))
		fi, errCGI := v.Stat(s.root + script)
		if !slash || errIndex == nil || errCGI != nil || fi.Mode()&0o111 == 0 {
			return false
		}
	}
	info := ""
	// What is after the program's name in the path is its PATH_INFO.
	for i := 1; i < len(script); i++ {
		if script[i] == '/' && !s.directory(script[:i]) {
			script, info = script[:i], script[i:]
		}
	}
	uri := decoded
	if hasQuery {
		uri += "?" + query
	}
	// REQUEST_URI and SCRIPT_FILENAME are not in RFC 3875, but programs expect them. The
	// address is as an IPv6 socket shows a peer that speaks IPv4.
	own := []string{
		"PATH_INFO=" + info, "REQUEST_METHOD=" + method, "REQUEST_URI=" + uri, "SCRIPT_FILENAME=" + path.Join(s.root, script),
		"SCRIPT_NAME=" + script, "QUERY_STRING=" + query, "SERVER_SOFTWARE=busybox httpd/1.35.0", "SERVER_PROTOCOL=HTTP/1.1",
		"GATEWAY_INTERFACE=CGI/1.1", "REMOTE_ADDR=[::ffff:" + conn.RemoteIP() + "]", fmt.Sprint("REMOTE_PORT=", conn.RemotePort()),
	}
	s.runCGI(conn, script, append(append(append([]string(nil), s.c.P.Env...), own...), env...), posted)
	return true
}

// directory reports whether a path below the root is a directory.
func (s *httpServer) directory(name string) bool {
	fi, err := s.c.View().Stat(path.Join(s.root, name))
	return err == nil && fi.IsDir()
}

// runCGI runs a program and sends what it writes. Its first header may be the
// status.
func (s *httpServer) runCGI(conn *kernel.Conn, script string, env []string, posted []byte) {
	m := s.c.P.Container().Machine()
	in, feed := m.Pipe()
	out, w := m.Pipe()
	defer out.Close()
	dir, name := path.Split(path.Join(s.root, script))
	child, err := s.c.P.Spawn(s.c.Ctx, kernel.Spec{
		Path: path.Join(dir, name), Argv: []string{name}, Env: env, Dir: path.Clean(dir), FDs: []kernel.File{in, w, s.c.P.FD(2)},
	})
	// The program has its own copies; ours, left open, would hide its end.
	_, _ = in.Close(), w.Close()
	if err != nil {
		_ = feed.Close()
		s.answer(conn, 404, "Not Found", "The requested URL was not found", true)
		return
	}
	// The pipe holds all of it, so this can't wait for a program that reads nothing.
	_, _ = feed.Write(s.c.Ctx, posted[:min(len(posted), maxPosted)])
	_ = feed.Close()
	var head []byte
	begun := false
	buf := make([]byte, 4096)
	for {
		n, err := out.Read(s.c.Ctx, buf)
		b := buf[:n]
		if !begun {
			// Until the status is known, what comes is kept.
			head = append(head, b...)
			if b, begun = cgiHead(head, err != nil); !begun {
				b = nil
			}
		}
		if _, werr := conn.Write(s.c.Ctx, b); err != nil || werr != nil {
			break
		}
	}
	// The client need not wait for what the program does after its output.
	_ = conn.Close()
	_, _ = s.c.P.Wait(s.c.Ctx, child)
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
	// A program may write the whole status line itself: four bytes decide that.
	case len(head) < 4 && !(last && len(head) > 0):
		return nil, false
	case bytes.HasPrefix(head, []byte("HTTP")):
		return head, true
	}
	return append([]byte("HTTP/1.1 200 OK\r\n"), head...), true
}
