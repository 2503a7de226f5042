package fakecri

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// This file lets interpreted processes talk to stated programs.

// serve opens the ports of a container's stated program in its sandbox's
// network namespace, if there are any; again at each time at which one begins or
// ends.
func (r *podNet) serve(c *container) {
	p := c.process
	if r.kern.machine == nil && r.kern.opts.OnListen == nil || p == nil || p.in != nil && p.in.stated == nil {
		return
	}
	ports := p.b.Ports
	if ports == nil {
		for _, n := range c.declaredPorts() {
			ports = append(ports, Port{Port: n})
		}
	}
	if len(ports) == 0 {
		return
	}
	if r.kern.machine == nil {
		r.kern.kernel() // which opens them, as those of all others
		return
	}
	pk := r.kern.podKernelOf(c.sandbox)
	pk.unserve(c)
	t := time.Duration(r.l.UnixNano() - p.startedAt)
	var next time.Duration
	for i := range ports {
		port := &ports[i]
		for _, at := range []time.Duration{port.After, port.Until} {
			if at > t && (next == 0 || at < next) {
				next = at
			}
		}
		if !during(t, port.After, port.Until) {
			continue
		}
		stop, err := pk.net.Serve(port.Port, r.handler(p, port))
		if err != nil {
			r.warner.warnOnce(c, fmt.Sprintf("port %d", port.Port), fmt.Sprintf("port %d is taken by another container of the pod", port.Port))
			continue
		}
		pk.keep(c, stop)
	}
	if next > 0 {
		timer := r.kern.powered.After(next-t, func() {
			if c.process == p {
				r.serve(c)
			}
		})
		pk.keep(c, func() { timer.Stop() })
	}
}

func (pk *podKernel) keep(c *container, stop func()) {
	if pk.served == nil {
		pk.served = map[*container][]func(){}
	}
	pk.served[c] = append(pk.served[c], stop)
}

// unserve closes the ports of a container's stated program.
func (pk *podKernel) unserve(c *container) {
	for _, stop := range pk.served[c] {
		stop()
	}
	delete(pk.served, c)
}

// unserve closes the ports of a container that ends.
func (r *podNet) unserve(c *container) {
	if pk := r.kern.podKernels[c.sandbox]; pk != nil {
		pk.unserve(c)
	}
}

// handler answers HTTP requests as a stated program does.
func (r *podNet) handler(p *process, port *Port) kernel.Handler {
	return func(data []byte) (kernel.Answer, bool) {
		head := headEnd(data)
		if head == 0 {
			return kernel.Answer{}, false
		}
		now := r.l.UnixNano()
		a := answer{port: port, at: time.Duration(now - p.startedAt), of: p.c, r: r}
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data)))
		if err != nil {
			return kernel.Answer{Data: []byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"), Close: true}, true
		}
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
		return kernel.Answer{Data: []byte(text), After: r.drawLatency(p.c, port), Close: true}, true
	}
}

// headEnd is where a request's head ends, 0 if that is not there yet.
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

// hasBody tells whether a request's body is there, as far as it is waited for.
func hasBody(req *http.Request, body []byte) bool {
	switch {
	case len(body) >= maxBody || req.Header.Get("Expect") != "":
		return true
	case req.ContentLength < 0: // chunked
		return bytes.HasSuffix(body, []byte("0\r\n\r\n"))
	}
	return int64(len(body)) >= min(req.ContentLength, maxBody)
}

// drawLatency draws how long an answer takes.
func (r *podNet) drawLatency(c *container, port *Port) time.Duration {
	if port.Latency.Max <= 0 && port.Latency.Min <= 0 {
		return 0
	}
	sub := c.subject()
	return r.l.Between(port.Latency.Min, max(port.Latency.Min, port.Latency.Max), "answer", sub.pod, sub.key()+uint64(r.l.UnixNano()))
}

// annotationPorts is where kubelets note the ports of a container's manifest.
const annotationPorts = "io.kubernetes.container.ports"

// declaredPorts are the ports that the pod's manifest lists for the container.
func (c *container) declaredPorts() []int {
	text := c.config.Annotations[annotationPorts]
	if text == "" {
		return nil
	}
	var ports []struct {
		ContainerPort int `json:"containerPort"`
	}
	if json.Unmarshal([]byte(text), &ports) != nil {
		return nil
	}
	out := make([]int, len(ports))
	for i, p := range ports {
		out[i] = p.ContainerPort
	}
	return out
}
