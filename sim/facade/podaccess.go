package facade

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// serveElsewhere serves a subresource that leads out of the API: what upstream's API
// server answers before it turns to a machine. No request gets further than that.
func (f *Facade) serveElsewhere(k *servedKind, info *request.RequestInfo) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if err := optionErrors(info, req); err != nil {
			f.fail(err, w, req)
			return
		}
		var refused *apierrors.StatusError
		var obj apiserver.Object
		err := k.storage.do(req.Context(), func(api *apiserver.Server) (err error) {
			obj, err = api.Get(k.row.Kind, info.Namespace, info.Name)
			return err
		})
		if pod, ok := obj.(*v1.Pod); ok && err == nil {
			var done bool
			if done, err = beforeNode(pod, info.Subresource, req); done {
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		if err == nil && f.serveOnNode(obj, k, info, w, req) {
			return
		}
		if err == nil {
			err = &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: "NotImplemented",
				Message: fmt.Sprintf("%s/%s is not simulated: nothing leads out of the API to the machines", k.row.Resource, info.Subresource),
			}}
		}
		if !errors.As(err, &refused) {
			refused = apierrors.NewInternalError(err)
		}
		f.fail(refused, w, req)
	}
}

// beforeNode is what is said of a request that is for a pod's node before it gets there
// (pkg/registry/core/pod/strategy.go: LogLocation, streamLocation,
// PortForwardLocation). done: there is nothing to be said, and no node to ask.
func beforeNode(pod *v1.Pod, sub string, req *http.Request) (done bool, err error) {
	switch container := req.URL.Query().Get("container"); sub {
	case "log":
		err = checkContainer(pod, container)
		return err == nil && pod.Spec.NodeName == "", err
	case "exec", "attach":
		if err := checkContainer(pod, container); err != nil {
			return false, err
		}
	case "portforward":
	default:
		return false, nil
	}
	if pod.Spec.NodeName == "" {
		return false, apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", pod.Name))
	}
	return false, nil
}

// optionErrors is what is wrong with the options of a request for logs, whatever the pod
// (ValidatePodLogOptions).
func optionErrors(info *request.RequestInfo, req *http.Request) *apierrors.StatusError {
	if info.Resource != "pods" || info.Subresource != "log" {
		return nil
	}
	var errs field.ErrorList
	q := req.URL.Query()
	for _, x := range []struct {
		name  string
		least int64
		text  string
	}{{"tailLines", 0, "must be greater than or equal to 0"}, {"limitBytes", 1, "must be greater than 0"}, {"sinceSeconds", 1, "must be greater than 0"}} {
		if n, err := strconv.ParseInt(q.Get(x.name), 10, 64); err == nil && n < x.least && (x.name != "sinceSeconds" || !q.Has("sinceTime")) {
			errs = append(errs, field.Invalid(field.NewPath(x.name), n, x.text))
		}
	}
	if q.Has("sinceSeconds") && q.Has("sinceTime") {
		errs = append(errs, field.Forbidden(field.NewPath(""), "at most one of `sinceTime` or `sinceSeconds` may be specified"))
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Kind: "PodLogOptions"}, info.Name, errs)
}

// checkContainer wants a pod to have the container that is named, or only one.
func checkContainer(pod *v1.Pod, name string) error {
	if name == "" && len(pod.Spec.Containers) == 1 {
		return nil
	}
	var names []string
	for _, c := range pod.Spec.InitContainers {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	switch {
	case name == "":
		return apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: %v", pod.Name, names))
	case !slices.Contains(names, name):
		return apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.Name))
	}
	return nil
}
