package facade

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Nodes leads to the kubelets' servers.
type Nodes interface {
	// ServeNode has the kubelet of a node serve a request, whose URL is the kubelet's. It
	// returns when the answer is over; an error means that there was none, as when nobody
	// listens there. It is called from any goroutine.
	ServeNode(node string, w http.ResponseWriter, r *http.Request) error
}

// serveOnNode serves what a kubelet answers: a pod's log, and what is below a node's
// proxy but streams. It reports whether the request was one.
func (f *Facade) serveOnNode(obj apiserver.Object, k *servedKind, info *request.RequestInfo, w http.ResponseWriter, req *http.Request) bool {
	if f.o.Nodes == nil {
		return false
	}
	q := req.URL.Query()
	switch o := obj.(type) {
	case *v1.Pod:
		if info.Subresource != "log" {
			return f.streamOnNode(o, info, w, req)
		}
		container := q.Get("container")
		if container == "" {
			container = o.Spec.Containers[0].Name
		}
		q.Del("container")
		u := &url.URL{Path: "/containerLogs/" + o.Namespace + "/" + o.Name + "/" + container, RawQuery: q.Encode()}
		checked := &checkedWriter{ResponseWriter: w}
		if err := f.o.Nodes.ServeNode(o.Spec.NodeName, checked, toNode(req, u)); err != nil {
			f.fail(unreachable(o.Spec.NodeName, u, err), w, req)
		} else if err := checked.refusal(schema.GroupResource{Resource: k.row.Resource}, o.Name, info); err != nil {
			f.fail(err, w, req)
		}
		return true
	case *v1.Node:
		if info.Subresource != "proxy" {
			return false
		}
		_, path, _ := strings.Cut(req.URL.Path, "/nodes/"+o.Name+"/proxy")
		u := &url.URL{Path: "/" + strings.TrimPrefix(path, "/"), RawQuery: req.URL.RawQuery}
		if err := f.o.Nodes.ServeNode(o.Name, w, toNode(req, u)); err != nil {
			f.fail(unreachable(o.Name, u, err), w, req)
		}
		return true
	}
	return false
}

// streamOnNode serves a stream into a pod (pkg/registry/core/pod: streamLocation,
// PortForwardLocation). It reports whether the request is for one.
func (f *Facade) streamOnNode(pod *v1.Pod, info *request.RequestInfo, w http.ResponseWriter, req *http.Request) bool {
	q := req.URL.Query()
	u := &url.URL{}
	switch info.Subresource {
	case "exec", "attach":
		container := q.Get("container")
		if container == "" {
			container = pod.Spec.Containers[0].Name
		}
		params := url.Values{}
		for _, p := range [...]struct{ name, kubelet string }{{"stdin", v1.ExecStdinParam}, {"stdout", v1.ExecStdoutParam}, {"stderr", v1.ExecStderrParam}, {"tty", v1.ExecTTYParam}} {
			if on := q.Get(p.name); on != "" && on != "0" && on != "false" {
				params.Set(p.kubelet, "1")
			}
		}
		if info.Subresource == "exec" {
			params[v1.ExecCommandParam] = q["command"]
		}
		u.Path, u.RawQuery = "/"+info.Subresource+"/"+pod.Namespace+"/"+pod.Name+"/"+container, params.Encode()
	case "portforward":
		u.Path, u.RawQuery = "/portForward/"+pod.Namespace+"/"+pod.Name, url.Values{v1.PortHeader: q["ports"]}.Encode()
		if len(q["ports"]) == 0 {
			u.RawQuery = ""
		}
	default:
		return false
	}
	if !strings.Contains(strings.ToLower(req.Header.Get("Connection")), "upgrade") {
		f.fail(apierrors.NewBadRequest("Upgrade request required"), w, req)
		return true
	}
	if err := f.o.Nodes.ServeNode(pod.Spec.NodeName, w, toNode(req, u)); err != nil {
		f.fail(unreachable(pod.Spec.NodeName, u, err), w, req)
	}
	return true
}

// toNode is a client's request as the API server makes it to a kubelet.
func toNode(req *http.Request, u *url.URL) *http.Request {
	out := req.Clone(req.Context())
	out.URL, out.RequestURI = u, ""
	out.Header.Del("Authorization")
	return out
}

// unreachable is the API server's error when it can't get to a kubelet.
func unreachable(node string, u *url.URL, err error) *apierrors.StatusError {
	var alert tls.AlertError
	if errors.As(err, &alert) { // it was there, and hung up
		return apierrors.NewInternalError(fmt.Errorf("Get %q: %w", "https://"+node+":10250"+u.String(), err))
	}
	return apierrors.NewInternalError(fmt.Errorf("Get %q: dial tcp %s:10250: %w", "https://"+node+":10250"+u.String(), node, err))
}

// checkedWriter hands an answer on unless it is a refusal, which it keeps
// (k8s.io/apiserver's GenericHttpResponseChecker).
type checkedWriter struct {
	http.ResponseWriter
	code int
	text strings.Builder
}

// maxRefusal is how much of a refusal is looked at, in bytes.
const maxRefusal = 2048

func (c *checkedWriter) WriteHeader(code int) {
	if c.code == 0 {
		if c.code = code; code < http.StatusBadRequest {
			c.ResponseWriter.WriteHeader(code)
		}
	}
}

func (c *checkedWriter) Write(b []byte) (int, error) {
	if c.code < http.StatusBadRequest {
		if c.code == 0 {
			c.Header().Set("Content-Type", "text/plain")
			c.code = http.StatusOK
		}
		return c.ResponseWriter.Write(b)
	}
	c.text.Write(b[:min(len(b), maxRefusal-min(c.text.Len(), maxRefusal))])
	return len(b), nil
}

// Flush implements http.Flusher.
func (c *checkedWriter) Flush() {
	if w, ok := c.ResponseWriter.(http.Flusher); ok && c.code < http.StatusBadRequest {
		w.Flush()
	}
}

// refusal is the kubelet's refusal as the API's, or nil.
func (c *checkedWriter) refusal(resource schema.GroupResource, name string, info *request.RequestInfo) *apierrors.StatusError {
	if c.code < http.StatusBadRequest {
		return nil
	}
	switch text := c.text.String(); c.code {
	case http.StatusInternalServerError:
		return apierrors.NewInternalError(errors.New(text))
	case http.StatusBadRequest:
		return apierrors.NewBadRequest(text)
	default:
		resource.Resource += "/" + info.Subresource
		return apierrors.NewGenericServerResponse(c.code, "", resource, name, text, 0, false)
	}
}
