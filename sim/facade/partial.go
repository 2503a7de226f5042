package facade

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// partial refuses reads that ask for the metadata of a list where there is one object, or
// of an object where there is a list. The handlers would, but name Go types that upstream
// doesn't have: its objects are of internal types.
func (k *servedKind) partial(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		info, _ := request.RequestInfoFrom(req.Context())
		if !strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata") || info.Verb == "watch" || k.row.CustomKind != "" {
			h(w, req)
			return
		}
		as, _, err := negotiation.NegotiateOutputMediaType(req, k.scope.Serializer, k.scope)
		isList, text := info.Verb == "list", ""
		switch {
		case err != nil || as.Convert == nil:
		case isList && as.Convert.Kind == "PartialObjectMetadata":
			text = "you requested PartialObjectMetadata, but the requested object is a list (%sList)"
		case !isList && as.Convert.Kind == "PartialObjectMetadataList":
			if _, err := k.storage.Get(request.WithNamespace(req.Context(), info.Namespace), info.Name, &metav1.GetOptions{}); err == nil {
				text = "you requested PartialObjectMetadataList, but the requested object is not a list (%s)"
			}
		}
		if text == "" {
			h(w, req)
			return
		}
		k.storage.f.fail(&apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable, Message: fmt.Sprintf(text, k.internalType()),
		}}, w, req)
	}
}

// internalType is the Go type that upstream's API has of a kind: "*core.Pod".
func (k *servedKind) internalType() string {
	pkg, _, _ := strings.Cut(k.row.Group, ".")
	if pkg == "" {
		pkg = "core"
	}
	return "*" + pkg + "." + k.row.Written()
}
