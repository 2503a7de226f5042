package applets

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/ground/loop"
)

// Wget is wget for http: there is no TLS in the simulation, so https is not an
// url that it knows, and --no-check-certificate is read for scripts' sake. -c,
// -t, -Y and -o are read and do nothing. Redirections are followed five times.
//
// A file that is there is not written over unless -O names it. The progress bar
// is shown once, at the end, complete: the real one's depends on the time
// between two packets.
func Wget() applet.Applet {
	return applet.New(runWget, "wget", "[-cqS] [--spider] [-O FILE] [-P DIR] [--header STR] [--post-data STR | --post-file FILE] [-U AGENT] [-T SEC] URL...")
}

// wgetRun is one run of wget. redirects counts over the whole URL list, as one run has one limit.
type wgetRun struct {
	c         *applet.Call
	o         *applet.Options
	timeout   time.Duration
	redirects int
}

// Most failures end the applet by Die, with status 1.
func runWget(c *applet.Call) int {
	o := c.Getopt("cqSO:o:P:T:U:t:Y:nH:d:f:", "continue=c", "quiet=q", "server-response=S", "output-document=O:", "output-file=o:", "directory-prefix=P:",
		"timeout=T:", "user-agent=U:", "tries=t:", "proxy=Y:", "header=H:", "post-data=d:", "post-file=f:", "spider=1", "no-check-certificate=n", "passive-ftp=n")
	if len(o.Args) == 0 {
		c.Usage()
	}
	// BusyBox's default of 15 minutes. Here it bounds each request as a whole.
	w := &wgetRun{c: c, o: o, timeout: 900 * time.Second}
	if o.Has('T') {
		w.timeout = time.Duration(c.Number(o.Str('T'))) * time.Second
	}
	code := 0
	for _, u := range o.Args {
		if n := w.get(u); n != 0 {
			code = n
		}
	}
	return code
}

// note tells of progress on stderr, unless -q. Output that is waiting goes first, so that both
// streams keep their order on one terminal.
func (w *wgetRun) note(text string) {
	if !w.o.Has('q') {
		w.c.Out.Flush()
		w.c.Stderr(text)
	}
}

// get fetches one URL. Failures end the applet, as the real one's do.
func (w *wgetRun) get(target string) int {
	c := w.c
	name := ""
	for {
		host, port, path := w.split(target)
		// The first URL names the file, also when it is redirected.
		if name == "" {
			name = w.fileName(path)
		}
		ip, ok := c.Address(host)
		if !ok {
			c.Die("bad address '%s'", host)
		}
		hostPort := host
		if port != 80 {
			hostPort += ":" + applet.Itoa(port)
		}
		w.note("Connecting to " + hostPort + " (" + ip + ":" + applet.Itoa(port) + ")\n")
		next, code := w.request(ip, port, hostPort, path, name)
		if next == "" {
			return code
		}
		// As many as BusyBox follows.
		if w.redirects++; w.redirects > 5 {
			c.Die("too many redirections")
		}
		// A location without a host is on the same one.
		if strings.HasPrefix(next, "/") {
			next = "http://" + hostPort + next
		}
		target = next
	}
}

// split takes a URL apart. A URL without a scheme is one of http. An IPv6 address in brackets is
// not understood.
func (w *wgetRun) split(target string) (host string, port int, path string) {
	rest, ok := strings.CutPrefix(target, "http://")
	if !ok {
		scheme, _, has := strings.Cut(target, "://")
		if has {
			w.c.Die("not an http or ftp url: %s", strings.TrimPrefix(target, scheme+"://"))
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
	// A name and password before the host are passed over, not sent.
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = rest[i+1:]
	}
	host, number, hasPort := strings.Cut(rest, ":")
	port = 80
	if hasPort {
		n, ok := applet.ParseUint(number)
		if !ok || n == 0 || n > 65535 {
			w.c.Die("bad port '%s'", number)
		}
		port = n
	}
	return host, port, path
}

// fileName is where to save: -O, or the last part of the path, below -P. The query is no part of
// the name.
func (w *wgetRun) fileName(path string) string {
	if w.o.Has('O') {
		return w.o.Str('O')
	}
	path, _, _ = strings.Cut(path, "?")
	name := cmp.Or(applet.Base(path), "index.html")
	if w.o.Has('P') {
		name = applet.Join(w.o.Str('P'), name)
	}
	return name
}

// headers is a request with its body, as BusyBox writes it.
func (w *wgetRun) headers(hostPort, path string) string {
	method, body := "GET", ""
	if w.o.Has('1') {
		method = "HEAD"
	}
	if w.o.Has('d') || w.o.Has('f') {
		method, body = "POST", w.o.Str('d')
		if w.o.Has('f') {
			data, err := w.c.ReadAll(w.o.Str('f'))
			if err != nil {
				w.c.Die(applet.CantOpen, w.o.Str('f'), applet.Strerror(err))
			}
			body = string(data)
		}
	}
	agent := "Wget"
	if w.o.Has('U') {
		agent = w.o.Str('U')
	}
	// The connection is closed after each answer, so a body without a length
	// ends with it.
	text := method + " " + path + " HTTP/1.1\r\nHost: " + hostPort + "\r\nUser-Agent: " + agent + "\r\nConnection: close\r\n"
	for _, h := range w.o.Value['H'] {
		text += h + "\r\n"
	}
	if method == "POST" {
		if !strings.Contains(strings.ToLower(strings.Join(w.o.Value['H'], "\n")), "content-type:") {
			text += "Content-Type: application/x-www-form-urlencoded\r\n"
		}
		text += "Content-Length: " + applet.Itoa(len(body)) + "\r\n"
	}
	return text + "\r\n" + body
}

// request makes one request; next is where a redirection leads. Every wait is under the time
// limit: connecting, the answer's head and its body.
func (w *wgetRun) request(ip string, port int, hostPort, path, name string) (next string, code int) {
	c := w.c
	var ctx context.Context = c.Ctx
	if w.timeout > 0 {
		limited, cancel := loop.WithTimeout(c.Ctx, w.timeout)
		defer cancel()
		ctx = limited
	}
	// The copy reads under the time limit, while messages still go through the
	// applet itself.
	sub := *c
	sub.Ctx = ctx
	conn, err := c.P.Dial(ctx, ip, port)
	timedOut := func() {
		if ctx.Err() != nil && c.Ctx.Err() == nil {
			c.Die("download timed out")
		}
	}
	if err != nil {
		timedOut()
		c.Die("can't connect to remote host (%s): %s", ip, applet.Strerror(err))
	}
	defer conn.Close()
	if _, err := conn.Write(ctx, []byte(w.headers(hostPort, path))); err != nil {
		c.Die("error getting response")
	}
	r := bufio.NewReader(sub.Stream(conn))
	status, err := r.ReadString('\n')
	if err != nil {
		timedOut()
		c.Die("error getting response: %s", "Connection reset by peer")
	}
	status = strings.TrimRight(status, "\r\n")
	if w.o.Has('S') {
		w.c.Out.Flush()
		w.c.Stderr("  " + status + "\n")
	}
	// An answer that is no success is reported by its first line alone, before
	// its headers are read.
	proto, rest, _ := strings.Cut(status, " ")
	ok := len(rest) >= 3 && (rest[0] == '3' || rest[:2] == "20")
	head := answerHead{length: -1}
	if ok {
		w.readHead(r, &head)
	}
	if !strings.HasPrefix(proto, "HTTP/") && !strings.HasPrefix(proto, "ICY") || len(rest) < 3 {
		c.Die("server returned error: %s", status)
	}
	switch number := rest[:3]; {
	case number == "200" || number == "201" || number == "202" || number == "203" || number == "206":
	// No content: no file is made for it.
	case number == "204":
		return "", 0
	case rest[0] == '3' && head.location != "":
		return head.location, 0
	default:
		c.Die("server returned error: %s", status)
	}
	// --spider asks whether the resource is there, and saves nothing.
	if w.o.Has('1') {
		w.note("remote file exists\n")
		return "", 0
	}
	w.save(r, name, head.length, head.chunked, timedOut)
	return "", 0
}

// answerHead is what counts of an answer's headers; length is -1 if none is given. A chunked body
// has no length; where a server sends both, chunks win.
type answerHead struct {
	length   int64
	chunked  bool
	location string
}

// readHead reads the headers, and the empty line after them. Names of headers are compared
// without case (RFC 9110). Folded lines are not joined.
func (w *wgetRun) readHead(r *bufio.Reader, to *answerHead) {
	for {
		h, err := r.ReadString('\n')
		h = strings.TrimRight(h, "\r\n")
		if w.o.Has('S') {
			w.c.Stderr("  " + h + "\n")
		}
		if h == "" || err != nil {
			return
		}
		k, v, _ := strings.Cut(h, ":")
		v = strings.TrimSpace(v)
		switch strings.ToLower(k) {
		case "content-length":
			if n, ok := applet.ParseUint(v); ok {
				to.length = int64(n)
			}
		case "transfer-encoding":
			to.chunked = strings.EqualFold(v, "chunked")
		case "location":
			to.location = v
		}
	}
}

// save writes the body to a file or, for -, to stdout. A body shorter than its
// length is an error, as is one that takes too long. What was saved before an error stays.
func (w *wgetRun) save(r *bufio.Reader, name string, length int64, chunked bool, timedOut func()) {
	c := w.c
	var out io.Writer = c.Out
	if name != "-" {
		flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		// O_EXCL protects a file that is there, as the real one does.
		if !w.o.Has('O') {
			flag |= os.O_EXCL
		}
		f, err := c.View().Open(name, flag, 0o666)
		if err != nil {
			c.Die(applet.CantOpen, name, applet.Strerror(err))
		}
		defer f.Close()
		out = c.Stream(f)
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
			// Each chunk ends with a line break that does not count in its
			// length.
			_, _ = r.ReadString('\n')
		}
	case length >= 0:
		total, err = io.CopyN(out, r, length)
	default:
		total, err = io.Copy(out, r)
	}
	if err != nil {
		timedOut()
		// Fewer bytes than the length has promised.
		if err == io.EOF {
			c.Die("connection closed prematurely")
		}
		c.Die("%s", applet.Strerror(err))
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

// parseHex reads the length of a chunk, without what follows a semicolon.
func parseHex(s string) (int64, bool) {
	s, _, _ = strings.Cut(s, ";")
	n := int64(0)
	for _, b := range []byte(strings.ToLower(s)) {
		d := strings.IndexByte("0123456789abcdef", b)
		// The bound, checked before each digit, keeps n far from overflowing.
		if d < 0 || n > 1<<40 {
			return 0, false
		}
		n = n*16 + int64(d)
	}
	return n, s != ""
}

// humanProgress is a size for the bar: five digits, then k, M or G. It cuts rather than rounds.
func humanProgress(n int64) string {
	unit := " "
	for _, u := range []string{"k", "M", "G"} {
		if n < 100000 {
			break
		}
		n >>= 10
		unit = u
	}
	return applet.I64(n) + unit
}

// pad fills up to n with spaces at the end.
func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-len(s))) }

// padLeft fills up to n with spaces at the beginning.
func padLeft(s string, n int) string { return strings.Repeat(" ", max(0, n-len(s))) + s }
