package actor

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// httpGet is the command http.
func (p *program) httpGet(ctx context.Context) int {
	// The argument was checked when the command line was parsed.
	t, _ := parseURL(p.Args[0])
	p.deadline(p.Args[0])
	c, err := p.w.Dial(ctx, t.host, t.port, p.Options.Timeout)
	if err != nil {
		return p.fail(ctx, p.Args[0], err)
	}
	defer func() { _ = c.Close() }()
	method := cmp.Or(p.Options.Method, "GET")
	var b strings.Builder
	// One request a connection is all that a check needs.
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s:%d\r\nUser-Agent: drydock-actor\r\nConnection: close\r\n", method, t.path, t.host, t.port)
	for _, h := range p.Options.Headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	if p.Options.Data != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(p.Options.Data))
	}
	b.WriteString("\r\n" + p.Options.Data)
	if _, err := c.Write(ctx, []byte(b.String())); err != nil {
		return p.fail(ctx, p.Args[0], err)
	}
	status, body, err := readResponse(bufio.NewReader(&reader{ctx, c}), method == "HEAD")
	if err != nil {
		return p.fail(ctx, p.Args[0], err)
	}
	p.print(ctx, body)
	if status < 200 || status >= 400 {
		p.write2(ctx, "actor: http: "+p.Args[0]+": status "+itoa(status)+"\n")
		return 1
	}
	return 0
}

// readResponse reads a response; without a length the body goes on to the end.
func readResponse(r *bufio.Reader, noBody bool) (status int, body string, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, "", err
	}
	f := strings.Fields(line)
	if len(f) < 2 || !strings.HasPrefix(f[0], "HTTP/1.") {
		return 0, "", fmt.Errorf("not an answer of HTTP/1: %q", strings.TrimSpace(line))
	}
	if status, err = strconv.Atoi(f[1]); err != nil {
		return 0, "", fmt.Errorf("not a status: %q", f[1])
	}
	length, chunked := int64(-1), false
	for {
		if line, err = r.ReadString('\n'); err != nil {
			return 0, "", err
		}
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			break
		}
		name, v, _ := strings.Cut(line, ":")
		v = strings.TrimSpace(v)
		switch {
		case strings.EqualFold(name, "Content-Length"):
			if length, err = strconv.ParseInt(v, 10, 62); err != nil {
				return 0, "", fmt.Errorf("not a length: %q", v)
			}
		case strings.EqualFold(name, "Transfer-Encoding"):
			chunked = strings.EqualFold(v, "chunked")
		}
	}
	// A length that is missing means that the body ends with the connection.
	var src io.Reader = r
	switch {
	case noBody:
		return status, "", nil
	case chunked:
		body, err = readChunks(r)
		return status, body, err
	case length >= 0:
		src = io.LimitReader(r, length)
	}
	data, err := io.ReadAll(src)
	return status, string(data), err
}

// readChunks reads a chunked body; its trailers are of no use here.
func readChunks(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", err
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.ParseInt(size, 16, 40)
		if err != nil {
			return "", fmt.Errorf("not the size of a chunk: %q", size)
		}
		if n == 0 {
			return b.String(), nil
		}
		if _, err := io.CopyN(&b, r, n); err != nil {
			return "", err
		}
		// The line break behind a chunk's data.
		if _, err := r.ReadString('\n'); err != nil {
			return "", err
		}
	}
}

// tcpDial is the command tcp.
func (p *program) tcpDial(ctx context.Context) int {
	host, port, _ := parseHostPort(p.Args[0])
	p.deadline(p.Args[0])
	c, err := p.w.Dial(ctx, host, port, p.Options.Timeout)
	if err != nil {
		return p.fail(ctx, p.Args[0], err)
	}
	defer func() { _ = c.Close() }()
	// Without data, that the port accepts is all there is to find out.
	if p.Options.Data == "" {
		return 0
	}
	if _, err = c.Write(ctx, []byte(p.Options.Data)); err == nil {
		// The server learns that the request is complete, and its answer is read to the
		// end.
		err = c.CloseWrite()
	}
	if err != nil {
		return p.fail(ctx, p.Args[0], err)
	}
	return p.pour(ctx, p.Args[0], c)
}
