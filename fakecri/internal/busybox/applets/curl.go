package applets

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
)

// Curl is curl 8 for http, as probes and scripts call it; it is none of BusyBox, see
// Others. There is no TLS in the simulation: https is asked as http is, with a warning, and
// -k is read for scripts' sake, as are --compressed, -g, -N, -4, -6 and the versions of
// HTTP. There is no meter of progress. An option that is not known here ends it with 2,
// and a warning. Of -w those variables are known that writeOut has.
func Curl() applet.Applet { return applet.New(runCurl, "curl", "[OPTION]... URL...") }

// curlFlags are the options without a value, by the letter that stands for each.
const curlFlags = "sSfkLIivGONg46#"

// curlValues are those with one.
const curlValues = "owXHdmAueTbcx"

// curlLong are the long names. Letters that curl hasn't are made up.
var curlLong = []string{
	"silent=s", "show-error=S", "fail=f", "fail-with-body=Z", "insecure=k", "location=L", "head=I", "include=i", "verbose=v", "get=G",
	"remote-name=O", "no-buffer=N", "globoff=g", "ipv4=4", "ipv6=6", "progress-bar=#", "compressed=z", "http1.0=z", "http1.1=z", "http2=z", "no-progress-meter=z",
	"retry-connrefused=C", "retry-all-errors=Y", "post301=z", "post302=z", "no-keepalive=z", "tcp-nodelay=z", "tlsv1.2=z", "tlsv1.3=z", "fail-early=z",
	"output=o:", "write-out=w:", "request=X:", "header=H:", "data=d:", "data-raw=D:", "data-binary=B:", "data-ascii=d:", "json=J:", "max-time=m:", "connect-timeout=t:",
	"user-agent=A:", "user=u:", "referer=e:", "cookie=b:", "cookie-jar=c:", "retry=r:", "retry-delay=R:", "retry-max-time=M:", "max-redirs=x:", "url=l:", "cacert=n:", "cert=n:", "key=n:", "noproxy=n:",
}

// curlRun is one run of curl.
type curlRun struct {
	c       *applet.Call
	o       *applet.Options
	body    string // of the request
	posts   bool   // there is one
	outputs []string
	answer  curlAnswer // the last
}

// curlAnswer is what -w tells of a transfer.
type curlAnswer struct {
	status, redirects, size int
	url, kind, ip           string
	port                    int
	took, connected         time.Duration
	code                    int
	message                 string
}

// curlError ends a transfer with a code and a message.
type curlError struct {
	code int
	text string
}

// Error is the message, without curl's name and the code.
func (e *curlError) Error() string { return e.text }

func runCurl(c *applet.Call) int {
	spec := curlFlags
	for _, f := range curlValues {
		spec += string(f) + ":"
	}
	if unknown := unknownOption(c.Args, spec, curlLong); unknown != "" {
		c.P.Container().Warn("curl: the option " + unknown + " is not known here; it ends with 2")
		c.Stderr("curl: option " + unknown + ": is unknown\ncurl: try 'curl --help' or 'curl --manual' for more information\n")
		return 2
	}
	r := &curlRun{c: c, o: c.GetoptStatus(2, spec, curlLong...)}
	urls := append(r.o.Value['l'], r.o.Args...)
	if len(urls) == 0 {
		c.Stderr("curl: (2) no URL specified\n")
		return 2
	}
	if code := r.readBody(); code != 0 {
		return code
	}
	r.outputs = r.o.Value['o']
	code := 0
	for i, u := range urls {
		if n := r.transfer(u, i); n != 0 {
			code = n
		}
	}
	return code
}

// unknownOption is the first option of the arguments that is not known, "" without one.
func unknownOption(args []string, spec string, long []string) string {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return ""
		case strings.HasPrefix(a, "--"):
			name, _, _ := strings.Cut(a[2:], "=")
			found := false
			for _, l := range long {
				n, letter, _ := strings.Cut(l, "=")
				if n == name {
					found = true
					if strings.HasSuffix(letter, ":") && !strings.Contains(a, "=") {
						i++
					}
				}
			}
			if !found {
				return a
			}
		case len(a) > 1 && a[0] == '-':
			for j := 1; j < len(a); j++ {
				at := strings.IndexByte(spec, a[j])
				if at < 0 || a[j] == ':' {
					return "-" + a[j:j+1]
				}
				if at+1 < len(spec) && spec[at+1] == ':' {
					if j+1 == len(a) {
						i++
					}
					break
				}
			}
		}
	}
	return ""
}

// readBody makes the request's body of -d and its like.
func (r *curlRun) readBody() int {
	var parts []string
	for _, f := range []byte("dDBJ") {
		for _, v := range r.o.Value[f] {
			if name, ok := strings.CutPrefix(v, "@"); ok && f != 'D' {
				data, err := r.c.ReadAll(name)
				if err != nil {
					r.c.Stderr("curl: option -d: error encountered when reading a file\n")
					return 26
				}
				v = string(data)
				if f == 'd' { // as curl does, unless it is binary
					v = strings.NewReplacer("\r", "", "\n", "").Replace(v)
				}
			}
			parts, r.posts = append(parts, v), true
		}
	}
	r.body = strings.Join(parts, "&")
	return 0
}

// seconds is the value of an option that is a number of seconds, 0 without one.
func (r *curlRun) seconds(f byte) time.Duration {
	v, _ := strconv.ParseFloat(r.o.Str(f), 64)
	return time.Duration(v * float64(time.Second))
}

// transfer fetches one URL, and again as --retry says; it returns the exit code.
func (r *curlRun) transfer(target string, index int) int {
	retries, _ := strconv.Atoi(r.o.Str('r'))
	began, wait := r.c.P.Now(), time.Second
	for {
		r.answer = curlAnswer{url: target}
		err := r.fetch(target, index)
		if r.o.Has('R') {
			wait = r.seconds('R')
		}
		if retries == 0 || !r.transient(err) || r.o.Has('M') && r.c.P.Now().Sub(began)+wait > r.seconds('M') {
			return r.finish(err)
		}
		if !r.o.Has('s') {
			what := "HTTP error"
			var e *curlError
			if errors.As(err, &e) && e.code != 22 {
				what = e.text
			}
			r.c.Stderr(fmt.Sprintf("Warning: Problem: %s. Will retry in %d seconds. %d retries left.\n", what, int(wait.Seconds()), retries))
		}
		retries--
		r.c.Out.Flush()
		r.c.Pause(wait)
		wait = min(2*wait, 10*time.Minute)
	}
}

// transient reports whether --retry is about what has come of a transfer.
func (r *curlRun) transient(err error) bool {
	var e *curlError
	if errors.As(err, &e) {
		switch {
		case r.o.Has('Y'), e.code == 28, e.code == 7 && r.o.Has('C'):
			return true
		case e.code != 22:
			return false
		}
	}
	switch r.answer.status {
	case 408, 429, 500, 502, 503, 504:
		return true
	}
	return false
}

// finish says how a transfer ended.
func (r *curlRun) finish(err error) int {
	var e *curlError
	if errors.As(err, &e) {
		r.answer.code, r.answer.message = e.code, e.text
		if !r.o.Has('s') || r.o.Has('S') {
			r.c.Out.Flush()
			r.c.Stderr(fmt.Sprintf("curl: (%d) %s\n", e.code, e.text))
		}
	}
	if r.o.Has('w') {
		r.c.Print(r.answer.writeOut(r.o.Str('w')))
	}
	return r.answer.code
}

// fetch follows a URL to its end.
func (r *curlRun) fetch(target string, index int) error {
	began := r.c.P.Now()
	defer func() { r.answer.took = r.c.P.Now().Sub(began) }()
	ctx := r.c.Ctx
	if d := r.seconds('m'); d > 0 {
		limited, cancel := loop.WithTimeout(r.c.Ctx, d)
		defer cancel()
		ctx = limited
	}
	if !strings.Contains(target, "://") {
		target = "http://" + target
	}
	u, err := url.Parse(target)
	if err != nil || u.Hostname() == "" {
		return &curlError{3, "URL rejected: Malformed input to a URL function"}
	}
	method := r.o.Str('X')
	posts, limit := r.posts && !r.o.Has('G'), 50
	if r.o.Has('x') {
		limit, _ = strconv.Atoi(r.o.Str('x'))
	}
	if r.o.Has('G') && r.posts {
		u.RawQuery = strings.Trim(u.RawQuery+"&"+r.body, "&")
	}
	for {
		r.answer.url = u.String()
		verb := method
		switch {
		case verb != "":
		case r.o.Has('I'):
			verb = http.MethodHead
		case posts:
			verb = http.MethodPost
		default:
			verb = http.MethodGet
		}
		next, err := r.request(ctx, began, u, verb, posts, index)
		if err != nil || next == nil {
			return err
		}
		if r.answer.redirects++; r.answer.redirects > limit {
			r.answer.redirects--
			return &curlError{47, fmt.Sprintf("Maximum (%d) redirects followed", limit)}
		}
		if s := r.answer.status; s == 301 || s == 302 || s == 303 {
			posts = false
		}
		u = next
	}
}

// connect connects to a URL's server.
func (r *curlRun) connect(ctx context.Context, began time.Time, u *url.URL) (*kernel.Conn, error) {
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, &curlError{1, fmt.Sprintf("Protocol %q not supported", u.Scheme)}
	}
	r.answer.port = 80
	if u.Scheme == "https" {
		r.answer.port = 443
		r.c.P.Container().Warn("curl: there is no TLS in the simulation; https is asked as http is")
	}
	if p := u.Port(); p != "" {
		r.answer.port, _ = strconv.Atoi(p)
	}
	ip, ok := r.c.Address(u.Hostname())
	if !ok {
		return nil, &curlError{6, "Could not resolve host: " + u.Hostname()}
	}
	r.answer.ip = ip
	if d := r.seconds('t'); d > 0 {
		limited, cancel := loop.WithTimeout(ctx, d)
		defer cancel()
		ctx = limited
	}
	start := r.c.P.Now()
	conn, err := r.c.P.Dial(ctx, ip, r.answer.port)
	r.answer.connected = r.c.P.Now().Sub(began)
	switch waited := r.c.P.Now().Sub(start).Milliseconds(); {
	case err == nil:
		return conn, nil
	case ctx.Err() != nil && r.c.Ctx.Err() == nil:
		return nil, &curlError{28, fmt.Sprintf("Connection timed out after %d milliseconds", waited)}
	default:
		return nil, &curlError{7, fmt.Sprintf("Failed to connect to %s port %d after %d ms: Couldn't connect to server", u.Hostname(), r.answer.port, waited)}
	}
}

// request makes one request; next is where -L leads.
func (r *curlRun) request(ctx context.Context, began time.Time, u *url.URL, verb string, posts bool, index int) (next *url.URL, err error) {
	conn, err := r.connect(ctx, began, u)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	timedOut := func(err error) error {
		if ctx.Err() != nil && r.c.Ctx.Err() == nil {
			return &curlError{28, fmt.Sprintf("Operation timed out after %d milliseconds with %d bytes received", r.c.P.Now().Sub(began).Milliseconds(), r.answer.size)}
		}
		return err
	}
	if _, err := conn.Write(ctx, []byte(r.head(u, verb, posts))); err != nil {
		return nil, timedOut(&curlError{55, "Send failure: Broken pipe"})
	}
	sub := *r.c
	sub.Ctx = ctx
	in := bufio.NewReader(sub.Stream(conn))
	if _, err := in.Peek(1); err != nil {
		return nil, timedOut(&curlError{52, "Empty reply from server"})
	}
	resp, err := http.ReadResponse(in, &http.Request{Method: verb})
	if err != nil {
		return nil, timedOut(&curlError{1, "Received HTTP/0.9 when not allowed"})
	}
	defer func() { _ = resp.Body.Close() }()
	r.answer.status, r.answer.kind = resp.StatusCode, resp.Header.Get("Content-Type")
	if r.o.Has('L') && resp.StatusCode/100 == 3 && resp.Header.Get("Location") != "" {
		if next, err = u.Parse(resp.Header.Get("Location")); err != nil {
			return nil, &curlError{3, "URL rejected: Malformed input to a URL function"}
		}
	}
	out, err := r.output(u, index)
	if err != nil {
		return nil, err
	}
	if r.o.Has('I') || r.o.Has('i') {
		r.showHead(out, resp)
	}
	if next != nil {
		return next, nil
	}
	failed := resp.StatusCode >= 400 && (r.o.Has('f') || r.o.Has('Z'))
	if !failed || r.o.Has('Z') {
		n, err := io.Copy(out, resp.Body)
		if r.answer.size = int(n); err != nil {
			return nil, timedOut(&curlError{18, "transfer closed with outstanding read data remaining"})
		}
	}
	if failed {
		return nil, &curlError{22, fmt.Sprintf("The requested URL returned error: %d", resp.StatusCode)}
	}
	return nil, nil
}

// head is a request with its body.
func (r *curlRun) head(u *url.URL, verb string, posts bool) string {
	host := u.Host
	path := u.RequestURI()
	var own strings.Builder
	given := map[string]bool{}
	for _, h := range r.o.Value['H'] {
		name, value, ok := strings.Cut(h, ":")
		given[strings.ToLower(strings.TrimSuffix(name, ";"))] = true
		if ok && strings.TrimSpace(value) != "" { // else it takes the header away
			own.WriteString(name + ":" + value + "\r\n")
		}
	}
	text := verb + " " + path + " HTTP/1.1\r\n"
	add := func(name, value string) {
		if !given[strings.ToLower(name)] {
			text += name + ": " + value + "\r\n"
		}
	}
	add("Host", host)
	if r.o.Has('u') {
		add("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(r.o.Str('u'))))
	}
	agent := "curl/8.9.1"
	if r.o.Has('A') {
		agent = r.o.Str('A')
	}
	add("User-Agent", agent)
	accept := "*/*"
	if r.o.Has('J') {
		accept = "application/json"
	}
	add("Accept", accept)
	if r.o.Has('e') {
		add("Referer", r.o.Str('e'))
	}
	if r.o.Has('b') {
		add("Cookie", r.o.Str('b'))
	}
	text += own.String()
	if !posts {
		return text + "\r\n"
	}
	add("Content-Length", strconv.Itoa(len(r.body)))
	kind := "application/x-www-form-urlencoded"
	if r.o.Has('J') {
		kind = "application/json"
	}
	add("Content-Type", kind)
	return text + "\r\n" + r.body
}

// output is where a body goes: -o, -O or stdout.
func (r *curlRun) output(u *url.URL, index int) (io.Writer, error) {
	name := "-"
	switch {
	case index < len(r.outputs):
		name = r.outputs[index]
	case r.o.Has('O'):
		if name = applet.Base(u.Path); name == "" || name == "/" {
			return nil, &curlError{23, "Remote file name has no length"}
		}
	}
	if name == "-" {
		return r.c.Out, nil
	}
	f, err := r.c.Create(name, false)
	if err != nil {
		return nil, &curlError{23, "client returned ERROR on write, 1 bytes passed, 0 returned"}
	}
	return f, nil
}

// showHead prints the answer's status line and headers.
func (r *curlRun) showHead(out io.Writer, resp *http.Response) {
	_, _ = io.WriteString(out, resp.Proto+" "+resp.Status+"\r\n")
	if resp.ContentLength >= 0 {
		_, _ = io.WriteString(out, "Content-Length: "+strconv.FormatInt(resp.ContentLength, 10)+"\r\n")
	}
	h := resp.Header.Clone()
	h.Del("Content-Length")
	_ = h.Write(out) // sorted by name
	_, _ = io.WriteString(out, "\r\n")
}

// writeOut fills in the format of -w.
func (a *curlAnswer) writeOut(format string) string {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.6f", d.Seconds()) }
	status := fmt.Sprintf("%03d", a.status)
	scheme, _, _ := strings.Cut(a.url, "://")
	return strings.NewReplacer(
		"%%", "%", `\n`, "\n", `\t`, "\t", `\r`, "\r",
		"%{http_code}", status, "%{response_code}", status, "%{size_download}", strconv.Itoa(a.size),
		"%{num_redirects}", strconv.Itoa(a.redirects), "%{url_effective}", a.url, "%{url}", a.url, "%{content_type}", a.kind,
		"%{remote_ip}", a.ip, "%{remote_port}", strconv.Itoa(a.port), "%{scheme}", scheme,
		"%{time_total}", seconds(a.took), "%{time_connect}", seconds(a.connected), "%{time_starttransfer}", seconds(a.took),
		"%{time_namelookup}", seconds(0), "%{exitcode}", strconv.Itoa(a.code), "%{errormsg}", a.message, "%{http_version}", "1.1",
	).Replace(format)
}
