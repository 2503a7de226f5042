package server

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/emicklei/go-restful/v3"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

func uid(req *restful.Request) types.UID { return types.UID(req.PathParameter("uid")) }

// errNoStreams says that streams are not served here.
var errNoStreams = errors.New("streams are not served")

// streamOptions reads which streams of exec and attach a client wants.
func streamOptions(r *http.Request, kind StreamKind) (Stream, error) {
	o, err := remotecommand.NewOptions(r)
	if err != nil {
		return Stream{}, err
	}
	return Stream{Kind: kind, Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, TTY: o.TTY}, nil
}

// getExec connects a client with a command in a container.
func (s *Server) getExec(req *restful.Request, resp *restful.Response) {
	s.stream(req, resp, ExecStream, func(t Target, o Stream) (*url.URL, error) {
		return s.o.Host.Exec(req.Request.Context(), t, &runtimeapi.ExecRequest{
			Cmd: req.Request.URL.Query()[v1.ExecCommandParam], Tty: o.TTY, Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr,
		})
	})
}

// getAttach connects one with a container's own streams.
func (s *Server) getAttach(req *restful.Request, resp *restful.Response) {
	s.stream(req, resp, AttachStream, func(t Target, o Stream) (*url.URL, error) {
		return s.o.Host.Attach(req.Request.Context(), t, &runtimeapi.AttachRequest{Tty: o.TTY, Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr})
	})
}

// stream asks the runtime where it serves a stream, and connects the client.
func (s *Server) stream(req *restful.Request, resp *restful.Response, kind StreamKind, ask func(Target, Stream) (*url.URL, error)) {
	o, err := streamOptions(req.Request, kind)
	if err != nil {
		writeError(resp, http.StatusBadRequest, err)
		return
	}
	t := target(req)
	if s.find(req, resp, t, "pod does not exist") == nil {
		return
	}
	if s.o.Streams == nil {
		writeError(resp, http.StatusNotImplemented, errNoStreams)
		return
	}
	to, err := ask(t, o)
	if err != nil {
		_ = streaming.WriteError(err, resp.ResponseWriter)
		return
	}
	s.o.Streams.ServeStream(resp.ResponseWriter, req.Request, to, o)
}

// getPortForward connects a client with ports of a pod.
func (s *Server) getPortForward(req *restful.Request, resp *restful.Response) {
	// Who tunnels SPDY names ports within it, and so does who speaks SPDY.
	ports := &portforward.V4Options{}
	if !wsstream.IsWebSocketRequestWithTunnelingProtocol(req.Request) {
		var err error
		if ports, err = portforward.NewV4Options(req.Request); err != nil {
			writeError(resp, http.StatusBadRequest, err)
			return
		}
	}
	t := target(req)
	pod := s.find(req, resp, t, "pod does not exist")
	if pod == nil {
		return
	}
	if t.UID != "" && pod.UID != t.UID {
		writeError(resp, http.StatusNotFound, errors.New("pod not found"))
		return
	}
	t.UID = pod.UID
	if s.o.Streams == nil {
		writeError(resp, http.StatusNotImplemented, errNoStreams)
		return
	}
	to, err := s.o.Host.PortForward(req.Request.Context(), t, &runtimeapi.PortForwardRequest{Port: ports.Ports})
	if err != nil {
		_ = streaming.WriteError(err, resp.ResponseWriter)
		return
	}
	s.o.Streams.ServeStream(resp.ResponseWriter, req.Request, to, Stream{Kind: PortForwardStream})
}

// getRun runs a command and answers with its output. Its words are in one parameter,
// between spaces.
func (s *Server) getRun(req *restful.Request, resp *restful.Response) {
	t := target(req)
	if s.find(req, resp, t, "pod does not exist") == nil {
		return
	}
	out, err := s.o.Host.Run(req.Request.Context(), t, strings.Split(req.QueryParameter("cmd"), " "))
	if err != nil {
		writeError(resp, http.StatusInternalServerError, err)
		return
	}
	writeJSON(resp, out)
}
