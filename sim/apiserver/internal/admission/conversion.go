package admission

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// Conversion is one object that a definition's webhook is asked for in another version
// (k8s.io/apiextensions-apiserver, pkg/apiserver/conversion/webhook_converter.go).
type Conversion struct {
	Hook *apiextensionsv1.WebhookConversion
	// To is the API version that is wanted.
	To string
	// Object is what is to be converted. It is only read.
	Object *unstructured.Unstructured
	key    string
}

// converted is what came of a conversion.
type converted struct {
	object *unstructured.Unstructured
	err    error
}

// Converted keeps what came of a conversion for the next attempt: an object, or why there
// is none.
func (c *Calls) Converted(v *Conversion, object *unstructured.Unstructured, err error) {
	if c.conversions == nil {
		c.conversions = map[string]converted{}
	}
	c.conversions[v.key] = converted{object, err}
}

// Wanting reports whether the last attempt lacked something.
func (c *Calls) Wanting() bool {
	return c != nil && len(c.Wanted)+len(c.WantedConversions) > 0
}

// errNobodyConverts is why the cluster's own components don't get an object in another
// version.
var errNobodyConverts = errors.New("only clients' requests have webhooks called")

// Convert returns a copy of a custom resource in the version of a row. Where a webhook
// converts, that is what it has answered; ErrCalls says that it is to be asked.
func (c *Calls) Convert(obj kind.Object, to *kind.Info) (kind.Object, error) {
	hook := to.Custom.Hook
	if hook == nil {
		return to.Custom.Convert(obj), nil
	}
	u := obj.(*unstructured.Unstructured)
	if c == nil {
		return nil, ConversionFailed(u, errNobodyConverts)
	}
	v := &Conversion{Hook: hook, To: to.APIVersion(), Object: u}
	// The answer must not depend on metadata but labels and annotations, and much of it
	// is drawn anew, or the time's, in the next attempt.
	bare := u.DeepCopy()
	bare.Object["metadata"] = map[string]any{}
	bare.SetName(u.GetName())
	bare.SetNamespace(u.GetNamespace())
	bare.SetLabels(u.GetLabels())
	bare.SetAnnotations(u.GetAnnotations())
	data, err := bare.MarshalJSON()
	if err != nil {
		return nil, ConversionFailed(u, err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s", v.To, data))
	v.key = base64.RawStdEncoding.EncodeToString(sum[:])
	answer, ok := c.conversions[v.key]
	switch {
	case !ok:
		c.WantedConversions = append(c.WantedConversions, v)
		return nil, ErrCalls
	case answer.err != nil:
		return nil, answer.err
	}
	return to.Custom.Adopt(u, answer.object)
}

// ConversionFailed is the error of an object that can't be had in another version.
func ConversionFailed(obj metav1.Object, err error) error {
	u := obj.(*unstructured.Unstructured)
	return fmt.Errorf("conversion webhook for %v failed: %w", u.GroupVersionKind(), err)
}
