package server

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/emicklei/go-restful/v3"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// getPods lists the kubelet's pods.
func (s *Server) getPods(req *restful.Request, resp *restful.Response) {
	pods, err := s.o.Host.Pods(req.Request.Context())
	writePods(resp, pods, err)
}

// getRunningPods lists the runtime's.
func (s *Server) getRunningPods(req *restful.Request, resp *restful.Response) {
	pods, err := s.o.Host.RunningPods(req.Request.Context())
	writePods(resp, pods, err)
}

func writePods(resp *restful.Response, pods []*v1.Pod, err error) {
	var list v1.PodList
	for _, p := range pods {
		item := *p
		item.TypeMeta = metav1.TypeMeta{} // manifests have one
		list.Items = append(list.Items, item)
	}
	var b []byte
	if err == nil {
		b, err = runtime.Encode(scheme.Codecs.LegacyCodec(v1.SchemeGroupVersion), &list)
	}
	if err != nil {
		writeError(resp, http.StatusInternalServerError, err)
		return
	}
	writeJSON(resp, b)
}

// writeJSON writes what is JSON, or, as upstream, what a command said.
func writeJSON(resp *restful.Response, b []byte) {
	if b == nil {
		resp.WriteHeader(http.StatusOK)
		return
	}
	resp.Header().Set(restful.HEADER_ContentType, restful.MIME_JSON)
	resp.WriteHeader(http.StatusOK)
	_, _ = resp.Write(b)
}

// writeError writes an error's text.
func writeError(resp *restful.Response, code int, err error) { _ = resp.WriteError(code, err) }

// target is the container that a request's path names.
func target(req *restful.Request) Target {
	return Target{
		Namespace: req.PathParameter("podNamespace"), Pod: req.PathParameter("podID"),
		UID: uid(req), Container: req.PathParameter("containerName"),
	}
}

// find returns the pod of a request, or writes that there is none.
func (s *Server) find(req *restful.Request, resp *restful.Response, t Target, absent string) *v1.Pod {
	pod, err := s.o.Host.Pod(req.Request.Context(), t.Namespace, t.Pod)
	switch {
	case err != nil:
		writeError(resp, http.StatusInternalServerError, err)
	case pod == nil:
		writeError(resp, http.StatusNotFound, errors.New(absent))
	}
	return pod
}

// hasContainer reports whether a pod's spec has a container, of any kind.
func hasContainer(pod *v1.Pod, name string) bool {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return true
		}
	}
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return true
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return true
		}
	}
	return false
}

// checkpoint has the runtime write a checkpoint.
func (s *Server) checkpoint(req *restful.Request, resp *restful.Response) {
	t := target(req)
	pod := s.find(req, resp, t, "pod does not exist")
	if pod == nil {
		return
	}
	if !hasContainer(pod, t.Container) {
		writeError(resp, http.StatusNotFound, fmt.Errorf("container %v does not exist", t.Container))
		return
	}
	var timeout int64
	if all := req.Request.URL.Query()["timeout"]; len(all) > 0 {
		var err error
		if timeout, err = strconv.ParseInt(all[len(all)-1], 10, 64); err != nil {
			writeError(resp, http.StatusNotFound, errors.New("cannot parse value of timeout parameter"))
			return
		}
	}
	t.UID = pod.UID
	file, err := s.o.Host.Checkpoint(req.Request.Context(), t, timeout)
	if err != nil {
		writeError(resp, http.StatusInternalServerError, fmt.Errorf("checkpointing of %v/%v/%v failed (%w)", t.Namespace, t.Pod, t.Container, err))
		return
	}
	writeJSON(resp, []byte(`{"items":["`+file+`"]}`))
}

// getSummary serves /stats/summary.
func (s *Server) getSummary(req *restful.Request, resp *restful.Response) {
	only := false
	err := req.Request.ParseForm()
	if err != nil {
		err = fmt.Errorf("parse form failed: %w", err)
	} else if v := req.Request.Form["only_cpu_and_memory"]; len(v) == 1 && v[0] == "true" {
		only = true
	}
	if err == nil {
		var summary any
		if summary, err = s.o.Host.Summary(req.Request.Context(), only); err == nil {
			_ = resp.WriteAsJson(summary)
			return
		}
	}
	_ = resp.WriteErrorString(http.StatusInternalServerError, fmt.Sprintf("Internal Error: %v", err))
}
