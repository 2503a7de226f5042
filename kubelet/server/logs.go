package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/emicklei/go-restful/v3"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The errors of a log's options say no more than this, as upstream's.
var (
	errLogQuery   = errors.New(`{"message": "Unable to decode query."}`)
	errLogOptions = errors.New(`{"message": "Invalid request."}`)
)

// getContainerLogs serves /containerLogs.
func (s *Server) getContainerLogs(req *restful.Request, resp *restful.Response) {
	t := target(req)
	o, err := LogOptions(req.Request.URL.Query())
	if err != nil {
		writeError(resp, http.StatusBadRequest, errLogQuery)
		return
	}
	if !validLogOptions(o) {
		writeError(resp, http.StatusUnprocessableEntity, errLogOptions)
		return
	}
	pod := s.find(req, resp, t, fmt.Sprintf("pod %q does not exist", t.Pod))
	if pod == nil {
		return
	}
	if !hasContainer(pod, t.Container) {
		writeError(resp, http.StatusNotFound, fmt.Errorf("container %q not found in pod %q", t.Container, t.Pod))
		return
	}
	if s.o.Logs == nil {
		writeError(resp, http.StatusNotImplemented, errors.New("logs are not served"))
		return
	}
	w := &flushWriter{resp.ResponseWriter}
	var stdout, stderr io.Writer = w, w
	switch {
	case o.Stream == nil:
	case *o.Stream == v1.LogStreamStdout:
		stderr = nil
	case *o.Stream == v1.LogStreamStderr:
		stdout = nil
	}
	resp.Header().Set("Transfer-Encoding", "chunked")
	log, err := s.o.Host.Log(req.Request.Context(), pod, t.Container, o.Previous)
	if err == nil {
		if stdout != nil {
			// So that the client has an answer even if nothing is said for long.
			_, _ = stdout.Write(nil)
		}
		err = s.o.Logs.ReadLog(req.Request.Context(), log, o, stdout, stderr)
	}
	if err != nil {
		writeError(resp, http.StatusBadRequest, err)
	}
}

// LogOptions reads the options of a request for logs. "tail" is an older name of
// tailLines, in which "all" stands for no limit.
func LogOptions(q url.Values) (*v1.PodLogOptions, error) {
	if tail := q.Get("tail"); tail == "all" {
		q.Del("tailLines")
	} else if tail != "" {
		q.Set("tailLines", tail)
	}
	o := &v1.PodLogOptions{}
	var errs []error
	flag := func(name string, to *bool) {
		if v, ok := q[name]; ok {
			errs = append(errs, runtime.Convert_Slice_string_To_bool(&v, to, nil))
		}
	}
	number := func(name string, to **int64) {
		if v, ok := q[name]; ok {
			errs = append(errs, runtime.Convert_Slice_string_To_Pointer_int64(&v, to, nil))
		}
	}
	flag("follow", &o.Follow)
	flag("previous", &o.Previous)
	flag("timestamps", &o.Timestamps)
	number("sinceSeconds", &o.SinceSeconds)
	number("tailLines", &o.TailLines)
	number("limitBytes", &o.LimitBytes)
	if v := q.Get("sinceTime"); q.Has("sinceTime") {
		o.SinceTime = &metav1.Time{}
		errs = append(errs, o.SinceTime.UnmarshalQueryParameter(v))
	}
	o.Container = q.Get("container")
	if q.Has("stream") {
		stream := q.Get("stream")
		o.Stream = &stream
	}
	return o, errors.Join(errs...)
}

// validLogOptions judges options as the API does (ValidatePodLogOptions).
func validLogOptions(o *v1.PodLogOptions) bool {
	switch {
	case o.TailLines != nil && *o.TailLines < 0,
		o.LimitBytes != nil && *o.LimitBytes < 1,
		o.SinceSeconds != nil && o.SinceTime != nil,
		o.SinceSeconds != nil && *o.SinceSeconds < 1:
		return false
	case o.Stream == nil || *o.Stream == v1.LogStreamAll:
		return true
	}
	return (*o.Stream == v1.LogStreamStdout || *o.Stream == v1.LogStreamStderr) && o.TailLines == nil
}

// flushWriter has what is written reach the client at once.
type flushWriter struct{ w http.ResponseWriter }

func (f *flushWriter) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	if w, ok := f.w.(http.Flusher); ok {
		w.Flush()
	}
	return n, err
}
