package podnet

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// This file lets interpreted processes talk to stated programs.

// Serve opens the ports of a container's stated program in its sandbox's
// network namespace, if there are any; again at each time at which one begins or
// ends. It does nothing as long as there is no kernel, which is made when something is
// interpreted: a node with stated programs alone never opens a port.
func (r *Net) Serve(c *records.Container) {
	p := c.Process
	if r.kern.Machine == nil && r.kern.Options.OnListen == nil || p == nil || p.Interpreted != nil && p.Interpreted.Stated == nil {
		return
	}
	ports := p.Behaviour.Ports
	if p.Behaviour.AnswersUnlisted(0) { // and so perhaps on those that its container declares
		for _, n := range c.DeclaredPorts() {
			if p.Behaviour.AnswersUnlisted(n) {
				ports = append(ports[:len(ports):len(ports)], program.Port{Port: n})
			}
		}
	}
	if len(ports) == 0 {
		return
	}
	// Somebody wants to know of all ports (OnListen): then there is a kernel at once.
	if r.kern.Machine == nil {
		r.kern.Kernel() // which opens them, as those of all others
		return
	}
	pk := r.kern.Pod(c.Sandbox)
	// Again from the start: this is called at each time at which a port changes. What was open is
	// closed, and opened again in the same step.
	pk.Unserve(c)
	t := time.Duration(r.l.UnixNano() - p.StartedAt)
	var next time.Duration
	for i := range ports {
		port := &ports[i]
		for _, at := range []time.Duration{port.After, port.Until} {
			if at > t && (next == 0 || at < next) {
				next = at
			}
		}
		if !program.During(t, port.After, port.Until) || p.TooLate(port) {
			continue
		}
		// Two containers of a pod share a namespace; in reality the second would fail to start.
		stop, err := pk.Net.Serve(port.Port, r.handler(p, port))
		if err != nil {
			r.warner.WarnOnce(c, fmt.Sprintf("port %d", port.Port), fmt.Sprintf("port %d is taken by another container of the pod", port.Port))
			continue
		}
		pk.Keep(c, stop)
	}
	if next > 0 {
		// Ports with a span open and close by time.
		timer := r.kern.Powered.After(next-t, func() {
			if c.Process == p {
				r.Serve(c)
			}
		})
		pk.Keep(c, func() { timer.Stop() })
	}
}

// Unserve closes the ports of a container that ends.
func (r *Net) Unserve(c *records.Container) {
	if pk := r.kern.Pods[c.Sandbox]; pk != nil {
		pk.Unserve(c)
	}
}

// handler answers HTTP requests as a stated program does. A request that is not complete yet has
// no answer: the kernel asks again when more has come. Answers close the connection, so no
// request follows another.
func (r *Net) handler(p *records.Process, port *program.Port) kernel.Handler {
	return func(data []byte) (kernel.Answer, bool) {
		if port.Raw {
			return talk(port, data), true
		}
		head := headEnd(data)
		if head == 0 {
			return kernel.Answer{}, false
		}
		now := r.l.UnixNano()
		a := answer{port: port, at: time.Duration(now - p.StartedAt), of: p.Container, r: r}
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data)))
		if err != nil {
			return kernel.Answer{Data: []byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"), Close: true}, true
		}
		// An Expect: 100-continue would wait for us, so the body counts as there.
		if !hasBody(req, data[head:]) {
			return kernel.Answer{}, false
		}
		code, body, err := a.http(req)
		if err != nil {
			return kernel.Answer{Close: true}, true
		}
		if req.Method == http.MethodHead {
			body = nil
		}
		text := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", code, http.StatusText(code), len(body), body)
		return kernel.Answer{Data: []byte(text), After: r.drawLatency(p.Container, port), Close: true}, true
	}
}

// talk is what a port says that speaks a protocol of its own.
func talk(port *program.Port, data []byte) kernel.Answer {
	words := strings.TrimSpace(string(data))
	for _, t := range port.Talks {
		if t.Ask == words {
			return kernel.Answer{Data: []byte(t.Say), Close: true}
		}
	}
	return kernel.Answer{Close: true}
}

// headEnd is where a request's head ends, 0 if that is not there yet. Bare newlines are accepted,
// as net/http does.
func headEnd(data []byte) int {
	if i := bytes.Index(data, []byte("\r\n\r\n")); i >= 0 {
		return i + 4
	}
	if i := bytes.Index(data, []byte("\n\n")); i >= 0 {
		return i + 2
	}
	return 0
}

// maxBody is up to which size a request's body is waited for, in bytes.
const maxBody = 16 << 20

// hasBody reports whether a request's body is there, as far as it is waited for. What is over
// maxBody is answered without it.
func hasBody(req *http.Request, body []byte) bool {
	switch {
	case len(body) >= maxBody || req.Header.Get("Expect") != "":
		return true
	case req.ContentLength < 0: // chunked
		return bytes.HasSuffix(body, []byte("0\r\n\r\n"))
	}
	return int64(len(body)) >= min(req.ContentLength, maxBody)
}

// drawLatency draws how long an answer takes. The time sets draws apart; the container's key
// makes them its own.
func (r *Net) drawLatency(c *records.Container, port *program.Port) time.Duration {
	if port.Latency.Max <= 0 && port.Latency.Min <= 0 {
		return 0
	}
	sub := c.Subject()
	return r.l.Between(port.Latency.Min, max(port.Latency.Min, port.Latency.Max), "answer", sub.Pod, sub.Key()+uint64(r.l.UnixNano()))
}
