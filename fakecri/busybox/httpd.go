package busybox

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

	"github.com/drydock-sim/drydock/fakecri/kernel"
)

func runHttpd(c *call) int {
	o := c.getopt("ifvp:h:u:r:c:d:e:m:")
	switch {
	case o.has('d'):
		text, err := url.QueryUnescape(o.str('d'))
		if err != nil {
			text = o.str('d')
		}
		c.print(text)
		return 0
	case o.has('e'):
		for _, b := range []byte(o.str('e')) {
			if isWord(b) && b != '_' {
				c.print(string(rune(b)))
			} else {
				c.printf("&#%d;", b)
			}
		}
		return 0
	}
	port := 80
	if o.has('p') {
		s := o.str('p')
		number := s[strings.LastIndexByte(s, ':')+1:]
		n, ok := parseUint(number)
		if !ok || n > 65535 {
			if strings.Contains(s, ":") {
				c.die("bad port '%s'", number)
			}
			c.die("bad address '%s'", s)
		}
		port = n
	}
	if o.has('h') {
		if err := c.p.Chdir(o.str('h')); err != nil {
			c.die("can't change directory to '%s': %s", o.str('h'), strerror(err))
		}
	}
	s := &httpServer{c: c, root: c.p.Dir, verbose: o.has('v')}
	if o.has('f') {
		l, err := c.p.Listen(c.ctx, port)
		if err != nil {
			c.die("bind: %s", strerror(err))
		}
		return s.serve(l)
	}
	// The port is open before the parent returns; it passes to the daemon.
	probe, err := c.p.Listen(c.ctx, port)
	if err != nil {
		c.die("bind: %s", strerror(err))
	}
	_ = probe.Close()
	null := c.p.Container().Machine().Null()
	ready := false
	c.p.Fork("httpd", []kernel.File{null, null, null}, func(ctx context.Context, p *kernel.Process) int {
		d := newCall(ctx, p, c.applet)
		l, err := p.Listen(ctx, port)
		ready = true
		if err != nil {
			return 1
		}
		return (&httpServer{c: d, root: s.root}).serve(l)
	})
	_ = null.Close()
	for i := 0; i < 100 && !ready; i++ {
		_ = c.p.Step(c.ctx, 100*time.Microsecond)
	}
	return 0
}

// httpServer serves the files below root, one connection per task.
type httpServer struct {
	c       *call
	root    string
	verbose bool
}

func (s *httpServer) serve(l *kernel.Listener) int {
	for {
		conn, err := l.Accept(s.c.ctx)
		if errors.Is(err, kernel.ErrInterrupted) {
			continue
		}
		if err != nil {
			return 1
		}
		s.c.p.Group().Go("httpd connection", func(ctx context.Context) {
			sub := *s.c
			sub.ctx = ctx
			(&httpServer{&sub, s.root, s.verbose}).connection(conn)
		})
	}
}

func (s *httpServer) connection(conn *kernel.Conn) {
	defer conn.Close()
	r := bufio.NewReader(io.LimitReader(stream{s.c, conn}, 1<<20))
	line, err := r.ReadString('\n')
	if err != nil {
		return
	}
	length := int64(0)
	var env []string
	for {
		h, err := r.ReadString('\n')
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
	_, _ = io.CopyN(&posted, r, min(length, 1<<20))
	f := strings.Fields(line)
	if len(f) < 2 {
		s.answer(conn, 400, "Bad Request", "Unsupported method", true)
		return
	}
	if s.cgi(conn, f[0], f[1], env, posted.Bytes()) {
		return
	}
	if f[0] != "GET" && f[0] != "HEAD" {
		s.answer(conn, 501, "Not Implemented", "The requested method is not recognized", true)
		return
	}
	s.file(conn, f[1], f[0] == "GET")
}

func (s *httpServer) file(conn *kernel.Conn, target string, body bool) {
	target, _, _ = strings.Cut(target, "?")
	decoded, err := url.PathUnescape(target)
	if err != nil || !strings.HasPrefix(decoded, "/") {
		s.answer(conn, 400, "Bad Request", "Unsupported method", body)
		return
	}
	name := path.Join(s.root, path.Clean(decoded))
	v := s.c.view()
	fi, err := v.Stat(name)
	if err == nil && fi.IsDir() {
		if !strings.HasSuffix(decoded, "/") {
			head := "HTTP/1.1 302 Found\r\n" + s.date() + "Connection: close\r\nContent-type: text/html\r\nLocation: " + decoded + "/\r\n\r\n"
			_, _ = conn.Write(s.c.ctx, []byte(head))
			return
		}
		name = path.Join(name, "index.html")
		fi, err = v.Stat(name)
	}
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
	if _, err := conn.Write(s.c.ctx, []byte(head)); err == nil && body {
		_ = s.c.pour(conn, f, -1)
	}
}

const httpTime = "Mon, 02 Jan 2006 15:04:05 GMT"

func (s *httpServer) date() string {
	return "Date: " + s.c.p.Now().UTC().Format(httpTime) + "\r\n"
}

func (s *httpServer) answer(conn *kernel.Conn, status int, title, text string, body bool) {
	out := fmt.Sprintf("HTTP/1.1 %d %s\r\n%sConnection: close\r\nContent-type: text/html\r\n\r\n", status, title, s.date())
	if body {
		out += fmt.Sprintf("<HTML><HEAD><TITLE>%d %s</TITLE></HEAD>\n<BODY><H1>%d %s</H1>\n%s\n</BODY></HTML>\n", status, title, status, title, text)
	}
	_, _ = conn.Write(s.c.ctx, []byte(out))
}

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
