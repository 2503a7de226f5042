package busybox

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
)

// wgetRun is one run of wget.
type wgetRun struct {
	c         *call
	o         *options
	timeout   time.Duration
	redirects int
}

func runWget(c *call) int {
	o := c.getopt("cqSO:o:P:T:U:t:Y:nH:d:f:", "continue=c", "quiet=q", "server-response=S", "output-document=O:", "output-file=o:", "directory-prefix=P:",
		"timeout=T:", "user-agent=U:", "tries=t:", "proxy=Y:", "header=H:", "post-data=d:", "post-file=f:", "spider=1", "no-check-certificate=n", "passive-ftp=n")
	if len(o.args) == 0 {
		c.usage()
	}
	w := &wgetRun{c: c, o: o, timeout: 900 * time.Second}
	if o.has('T') {
		w.timeout = time.Duration(c.number(o.str('T'))) * time.Second
	}
	code := 0
	for _, u := range o.args {
		if n := w.get(u); n != 0 {
			code = n
		}
	}
	return code
}

func (w *wgetRun) note(text string) {
	if !w.o.has('q') {
		w.c.out.flush()
		w.c.stderr(text)
	}
}

// get fetches one URL. Failures end the applet, as the real one's do.
func (w *wgetRun) get(target string) int {
	c := w.c
	name := ""
	for {
		host, port, path := w.split(target)
		if name == "" {
			name = w.fileName(path)
		}
		ip, ok := c.address(host)
		if !ok {
			c.die("bad address '%s'", host)
		}
		hostPort := host
		if port != 80 {
			hostPort += ":" + itoa(port)
		}
		w.note("Connecting to " + hostPort + " (" + ip + ":" + itoa(port) + ")\n")
		next, code := w.request(ip, port, hostPort, path, name)
		if next == "" {
			return code
		}
		if w.redirects++; w.redirects > 5 {
			c.die("too many redirections")
		}
		if strings.HasPrefix(next, "/") {
			next = "http://" + hostPort + next
		}
		target = next
	}
}

// split takes a URL apart.
func (w *wgetRun) split(target string) (host string, port int, path string) {
	rest, ok := strings.CutPrefix(target, "http://")
	if !ok {
		scheme, _, has := strings.Cut(target, "://")
		if has {
			w.c.die("not an http or ftp url: %s", strings.TrimPrefix(target, scheme+"://"))
		}
		rest = target
	}
	at := strings.IndexAny(rest, "/?#")
	path = "/"
	if at >= 0 {
		rest, path = rest[:at], rest[at:]
		if path[0] != '/' {
			path = "/" + path
		}
		path, _, _ = strings.Cut(path, "#")
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = rest[i+1:]
	}
	host, number, hasPort := strings.Cut(rest, ":")
	port = 80
	if hasPort {
		n, ok := parseUint(number)
		if !ok || n == 0 || n > 65535 {
			w.c.die("bad port '%s'", number)
		}
		port = n
	}
	return host, port, path
}

func (w *wgetRun) fileName(path string) string {
	if w.o.has('O') {
		return w.o.str('O')
	}
	path, _, _ = strings.Cut(path, "?")
	name := base(path)
	if name == "" {
		name = "index.html"
	}
	if w.o.has('P') {
		name = join(w.o.str('P'), name)
	}
	return name
}

func (w *wgetRun) headers(hostPort, path string) string {
	method, body := "GET", ""
	if w.o.has('1') {
		method = "HEAD"
	}
	if w.o.has('d') || w.o.has('f') {
		method, body = "POST", w.o.str('d')
		if w.o.has('f') {
			data, err := w.c.readAll(w.o.str('f'))
			if err != nil {
				w.c.die(cantOpen, w.o.str('f'), strerror(err))
			}
			body = string(data)
		}
	}
	agent := "Wget"
	if w.o.has('U') {
		agent = w.o.str('U')
	}
	text := method + " " + path + " HTTP/1.1\r\nHost: " + hostPort + "\r\nUser-Agent: " + agent + "\r\nConnection: close\r\n"
	for _, h := range w.o.value['H'] {
		text += h + "\r\n"
	}
	if method == "POST" {
		if !strings.Contains(strings.ToLower(strings.Join(w.o.value['H'], "\n")), "content-type:") {
			text += "Content-Type: application/x-www-form-urlencoded\r\n"
		}
		text += "Content-Length: " + itoa(len(body)) + "\r\n"
	}
	return text + "\r\n" + body
}

// request makes one request; next is where a redirection leads.
func (w *wgetRun) request(ip string, port int, hostPort, path, name string) (next string, code int) {
	c := w.c
	var ctx context.Context = c.ctx
	if w.timeout > 0 {
		limited, cancel := loop.WithTimeout(c.ctx, w.timeout)
		defer cancel()
		ctx = limited
	}
	sub := *c
	sub.ctx = ctx
	conn, err := c.p.Dial(ctx, ip, port)
	timedOut := func() {
		if ctx.Err() != nil && c.ctx.Err() == nil {
			c.die("download timed out")
		}
	}
	if err != nil {
		timedOut()
		c.die("can't connect to remote host (%s): %s", ip, strerror(err))
	}
	defer conn.Close()
	if _, err := conn.Write(ctx, []byte(w.headers(hostPort, path))); err != nil {
		c.die("error getting response")
	}
	r := bufio.NewReader(stream{&sub, conn})
	status, err := r.ReadString('\n')
	if err != nil {
		timedOut()
		c.die("error getting response: %s", "Connection reset by peer")
	}
	status = strings.TrimRight(status, "\r\n")
	if w.o.has('S') {
		w.c.out.flush()
		w.c.stderr("  " + status + "\n")
	}
	// Other answers are told of before their headers are read.
	proto, rest, _ := strings.Cut(status, " ")
	ok := len(rest) >= 3 && (rest[0] == '3' || rest[:2] == "20")
	head := answerHead{length: -1}
	if ok {
		w.readHead(r, &head)
	}
	if !strings.HasPrefix(proto, "HTTP/") && !strings.HasPrefix(proto, "ICY") || len(rest) < 3 {
		c.die("server returned error: %s", status)
	}
	switch number := rest[:3]; {
	case number == "200" || number == "201" || number == "202" || number == "203" || number == "206":
	case number == "204":
		return "", 0
	case rest[0] == '3' && head.location != "":
		return head.location, 0
	default:
		c.die("server returned error: %s", status)
	}
	if w.o.has('1') {
		w.note("remote file exists\n")
		return "", 0
	}
	w.save(r, name, head.length, head.chunked, timedOut)
	return "", 0
}

// answerHead is what counts of an answer's headers; length is -1 if none is given.
type answerHead struct {
	length   int64
	chunked  bool
	location string
}

// readHead reads the headers, and the empty line after them.
func (w *wgetRun) readHead(r *bufio.Reader, to *answerHead) {
	for {
		h, err := r.ReadString('\n')
		h = strings.TrimRight(h, "\r\n")
		if w.o.has('S') {
			w.c.stderr("  " + h + "\n")
		}
		if h == "" || err != nil {
			return
		}
		k, v, _ := strings.Cut(h, ":")
		v = strings.TrimSpace(v)
		switch strings.ToLower(k) {
		case "content-length":
			if n, ok := parseUint(v); ok {
				to.length = int64(n)
			}
		case "transfer-encoding":
			to.chunked = strings.EqualFold(v, "chunked")
		case "location":
			to.location = v
		}
	}
}

func (w *wgetRun) save(r *bufio.Reader, name string, length int64, chunked bool, timedOut func()) {
	c := w.c
	var out io.Writer = c.out
	if name != "-" {
		flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		if !w.o.has('O') {
			flag |= os.O_EXCL
		}
		f, err := c.view().Open(name, flag, 0o666)
		if err != nil {
			c.die(cantOpen, name, strerror(err))
		}
		defer f.Close()
		out = stream{c, f}
		w.note("saving to '" + name + "'\n")
	} else {
		w.note("writing to stdout\n")
	}
	var err error
	total := int64(0)
	switch {
	case chunked:
		for {
			line, lerr := r.ReadString('\n')
			n, ok := parseHex(strings.TrimSpace(line))
			if lerr != nil || !ok || n == 0 {
				break
			}
			if _, err = io.CopyN(out, r, n); err != nil {
				break
			}
			total += n
			_, _ = r.ReadString('\n')
		}
	case length >= 0:
		total, err = io.CopyN(out, r, length)
	default:
		total, err = io.Copy(out, r)
	}
	if err != nil {
		timedOut()
		if err == io.EOF {
			c.die("connection closed prematurely")
		}
		c.die("%s", strerror(err))
	}
	shown := name
	if len(shown) > 20 {
		shown = shown[:20]
	}
	percent := "100% |" + strings.Repeat("*", 32) + "|"
	w.note(pad(shown, 21) + percent + padLeft(humanProgress(total), 7) + " 0:00:00 ETA\n")
	if name == "-" {
		w.note("written to stdout\n")
	} else {
		w.note("'" + name + "' saved\n")
	}
}

func parseHex(s string) (int64, bool) {
	s, _, _ = strings.Cut(s, ";")
	n := int64(0)
	for _, b := range []byte(strings.ToLower(s)) {
		d := strings.IndexByte("0123456789abcdef", b)
		if d < 0 || n > 1<<40 {
			return 0, false
		}
		n = n*16 + int64(d)
	}
	return n, s != ""
}

func humanProgress(n int64) string {
	unit := " "
	for _, u := range []string{"k", "M", "G"} {
		if n < 100000 {
			break
		}
		n >>= 10
		unit = u
	}
	return i64(n) + unit
}

func pad(s string, n int) string     { return s + strings.Repeat(" ", max(0, n-len(s))) }
func padLeft(s string, n int) string { return strings.Repeat(" ", max(0, n-len(s))) + s }
