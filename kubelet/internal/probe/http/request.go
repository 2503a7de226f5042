package http

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/probe"
)

// The programs that requests say to come from.
const (
	ProbeAgent     = "kube-probe/1.36"
	LifecycleAgent = "kube-lifecycle/1.36"
)

const (
	headerAccept    = "Accept"
	headerUserAgent = "User-Agent"
)

// NewRequest makes the GET request that an action means (upstream
// NewRequestForHTTPGetAction). ip is the host unless the action names one. An
// error is about the port.
func NewRequest(h *v1.HTTPGetAction, c *v1.Container, ip, agent string) (*http.Request, error) {
	port, err := probe.ResolveContainerPort(h.Port, c)
	if err != nil {
		return nil, err
	}
	scheme, host := strings.ToLower(string(h.Scheme)), h.Host
	scheme = cmp.Or(scheme, "http")
	host = cmp.Or(host, ip)
	u := requestURL(scheme, host, port, h.Path)
	r := &http.Request{Method: http.MethodGet, URL: u, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: requestHeader(h.HTTPHeaders, agent), Host: u.Host}
	if v := r.Header.Get("Host"); v != "" {
		r.Host = v
	}
	return r, nil
}

// requestURL is the address of an action. Its path may have a query; what is no
// URL is taken as a path.
func requestURL(scheme, host string, port int, path string) *url.URL {
	u, err := url.Parse(path)
	if err != nil {
		u = &url.URL{Path: path}
	}
	u.Scheme = scheme
	u.Host = net.JoinHostPort(host, strconv.Itoa(port))
	return u
}

// requestHeader is the action's headers with those that every request has. An
// empty Accept takes that header away.
func requestHeader(list []v1.HTTPHeader, agent string) http.Header {
	h := http.Header{}
	for i := range list {
		h.Add(list[i].Name, list[i].Value)
	}
	if _, ok := h[headerUserAgent]; !ok {
		h.Set(headerUserAgent, agent)
	}
	if _, ok := h[headerAccept]; !ok {
		h.Set(headerAccept, "*/*")
	} else if h.Get(headerAccept) == "" {
		h.Del(headerAccept)
	}
	return h
}
