package actor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// servedHelp is what help says of the server; answer is where it is done.
const servedHelp = `
What --http serves (one request a connection):
  /                     the host name
  /healthz /readyz /livez   200, or 503 while unhealthy
  /healthy /unhealthy   set health from then on
  /status/CODE          that status
  /delay/DURATION       an answer after that time
  /redirect?URL         a redirect
  /request              the request as it came
  /echo                 the request's body
  /env/NAME             a variable
  /file/PATH            a file
  /client               the client's address
  /log/TEXT             write a line on standard output
  /exit/CODE            exit after the answer
`

// servers are what the program listens with, and the health that they show.
// They are shared by all ports, so a request to one shows at the others.
type servers struct {
	*program
	// unhealthy and healthy are what requests have set; they win over the options.
	unhealthy, healthy bool
}

// listen opens the ports; what can't be opened ends the program.
func (p *servers) listen(ctx context.Context) int {
	for _, s := range []struct {
		option string
		ports  []int
		serve  func(ctx context.Context, c Conn)
	}{{"http", p.Options.HTTP, p.serveHTTP}, {"tcp", p.Options.TCP, p.serveTCP}, {"grpc", p.Options.GRPC, p.serveGRPC}} {
		for _, port := range s.ports {
			l, err := p.w.Listen(ctx, port)
			if err != nil {
				return p.fail(ctx, "--"+s.option+"="+itoa(port), err)
			}
			p.w.Go("accept", func(ctx context.Context) {
				for {
					c, err := l.Accept(ctx)
					if err != nil {
						return
					}
					// Each connection is a task of its own, or one slow client would
					// block probes.
					p.w.Go("connection", func(ctx context.Context) {
						s.serve(ctx, c)
						_ = c.Close()
					})
				}
			})
		}
	}
	return 0
}

// health reports whether the program is healthy.
// A request beats the options, and the file counts only when the times allow it.
func (p *servers) health() bool {
	o, age := &p.Options, p.age()
	switch {
	case p.unhealthy:
		return false
	case p.healthy:
		return true
	case age < o.HealthyAfter:
		return false
	case o.UnhealthyAfter > 0 && age >= o.UnhealthyAfter && (o.RecoverAfter == 0 || age < o.RecoverAfter):
		return false
	}
	return o.HealthyFile == "" || p.exists(o.HealthyFile)
}

// serveTCP sends back what comes.
func (p *servers) serveTCP(ctx context.Context, c Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(ctx, buf)
		if n > 0 {
			if _, err := c.Write(ctx, buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// httpRequest is a request as it came.
type httpRequest struct {
	method, target string
	head           string // the request line and the headers
	body           []byte
}

// limits of a request, in bytes.
// A longer request is answered with 400.
const (
	maxHead = 64 << 10
	maxBody = 1 << 20
)

// readRequest reads a request.
// An empty first line does not end the head, and makes a bad request.
func readRequest(r *bufio.Reader) (*httpRequest, error) {
	var head strings.Builder
	length := int64(0)
	for first := true; ; first = false {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" && !first {
			break
		}
		if head.Len()+len(line) > maxHead {
			return nil, fmt.Errorf("the head is longer than %d bytes", maxHead)
		}
		head.WriteString(line + "\n")
		if name, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(name, "Content-Length") {
			if length, err = strconv.ParseInt(strings.TrimSpace(v), 10, 64); err != nil || length < 0 || length > maxBody {
				return nil, fmt.Errorf("the length %q", v)
			}
		}
	}
	q := &httpRequest{head: head.String()}
	first, _, _ := strings.Cut(q.head, "\n")
	f := strings.Fields(first)
	if len(f) != 3 || !strings.HasPrefix(f[1], "/") || !strings.HasPrefix(f[2], "HTTP/1.") {
		return nil, fmt.Errorf("the request %q", first)
	}
	q.method, q.target = f[0], f[1]
	q.body = make([]byte, length)
	_, err := io.ReadFull(r, q.body)
	return q, err
}

// statusText are the statuses that have a text.
var statusText = map[int]string{200: "OK", 302: "Found", 400: "Bad Request", 404: "Not Found", 500: "Internal Server Error", 503: "Service Unavailable"}

// httpAnswer is what is said to a request.
type httpAnswer struct {
	status int
	header string
	body   string
	// then is done after the answer has gone.
	then func(ctx context.Context)
}

// serveHTTP answers the request of a connection.
func (p *servers) serveHTTP(ctx context.Context, c Conn) {
	q, err := readRequest(bufio.NewReader(&reader{ctx, c}))
	var a httpAnswer
	switch {
	case err == io.EOF:
		// A probe of the port connects and leaves, which is not logged.
		return
	case err != nil:
		a = httpAnswer{status: 400, body: "bad request\n"}
		q = &httpRequest{method: "?", target: "?"}
	default:
		a = p.answer(ctx, q, c)
	}
	if p.Options.LogRequests {
		p.print(ctx, q.method, " ", q.target, " ", itoa(a.status), "\n")
	}
	text := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n%sConnection: close\r\n\r\n",
		a.status, statusText[a.status], len(a.body), a.header)
	// The length stays that of the body that GET would have, as HTTP has it for HEAD.
	if q.method != "HEAD" {
		text += a.body
	}
	_, _ = c.Write(ctx, []byte(text))
	if a.then != nil {
		_ = c.Close()
		a.then(ctx)
	}
}

// answer says what a request gets.
// Unknown paths, and files or variables that are not there, are 404.
func (p *servers) answer(ctx context.Context, q *httpRequest, c Conn) httpAnswer {
	file, query, _ := strings.Cut(q.target, "?")
	first, rest, _ := strings.Cut(strings.TrimPrefix(file, "/"), "/")
	ok := func(body string) httpAnswer { return httpAnswer{status: 200, body: body} }
	bad := func(err error) httpAnswer { return httpAnswer{status: 400, body: err.Error() + "\n"} }
	switch first {
	case "", "hostname":
		return ok(p.w.Hostname() + "\n")
	case "healthz", "readyz", "livez":
		if p.health() {
			return ok("ok\n")
		}
		return httpAnswer{status: 503, body: "unhealthy\n"}
	case "healthy", "unhealthy":
		p.healthy, p.unhealthy = first == "healthy", first == "unhealthy"
		return ok("ok\n")
	case "status":
		n, err := strconv.Atoi(rest)
		if err != nil || n < 200 || n > 599 {
			return bad(fmt.Errorf("%q is not a status from 200 to 599", rest))
		}
		return httpAnswer{status: n, body: rest + "\n"}
	case "delay":
		d, err := ParseDuration(rest)
		if err != nil {
			return bad(err)
		}
		// The task sleeps, so other connections are served meanwhile.
		p.w.Sleep(ctx, d)
		return ok("ok\n")
	case "redirect":
		return httpAnswer{status: 302, header: "Location: " + query + "\r\n", body: "redirected\n"}
	case "request":
		return ok(q.head)
	case "echo":
		return ok(string(q.body))
	case "env":
		if v, found := p.variable(rest); found {
			return ok(v + "\n")
		}
	case "file":
		if data, err := p.readFile(ctx, "/"+rest); err == nil {
			return ok(string(data))
		} else if !os.IsNotExist(err) {
			return httpAnswer{status: 500, body: reason(err) + "\n"}
		}
	case "client":
		return ok(c.Remote() + "\n")
	case "log":
		p.print(ctx, rest, "\n")
		return ok("ok\n")
	case "exit":
		code, err := parseCode(rest)
		if err != nil {
			return bad(err)
		}
		a := ok("ok\n")
		a.then = func(ctx context.Context) {
			// The answer needs that time to arrive.
			p.w.Sleep(ctx, 10*time.Millisecond)
			p.finish(ctx)
			p.w.Exit(ctx, code)
		}
		return a
	}
	return httpAnswer{status: 404, body: "not found\n"}
}
