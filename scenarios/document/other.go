package document

import (
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
)

// Other is a decoded document of a kind other than Scenario. It is written and
// refused as scenarios are: unknown fields, positions, required and enum tags.
type Other struct {
	r  *decode.Reader
	at decode.Place
}

// DecodeOther decodes the only document of a file into a struct by its json
// tags; readFile reads the files that it names. What is wrong is collected;
// Other.Err has it. It returns nil and decode.Errors when there is nothing to go
// on with.
func DecodeOther(file string, data []byte, readFile func(string) ([]byte, error), apiVersion, kind string, into any) (*Other, error) {
	r := decode.NewReader(readFile)
	docs := r.Documents(file, data)
	if err := r.Err(); err != nil {
		return nil, err
	}
	if len(docs) != 1 {
		r.Fail(file, "want one document of kind %s, there are %d", kind, len(docs))
		return nil, r.Err()
	}
	at := docs[0]
	if !at.IsMapping() {
		at.Mismatch("a " + kind)
		return nil, r.Err()
	}
	for name, want := range map[string]string{"kind": kind, "apiVersion": apiVersion} { //drydock:unordered both give the same error
		text := ""
		if x := at.Field(name); x.Written() {
			text, _ = x.Scalar()
		}
		if text != want {
			at.Refuse("want a document that begins with apiVersion: %s and kind: %s", apiVersion, kind)
			return nil, r.Err()
		}
	}
	at.Decode(into)
	return &Other{r, at}, nil
}

// Errorf notes what is wrong with a field ("spec.classes[0].share").
func (o *Other) Errorf(field, format string, args ...any) { o.at.Path(field).Errorf(format, args...) }

// Err returns all that was found wrong, as decode.Errors, or nil.
func (o *Other) Err() error { return o.r.Err() }

// ParseKubeletConfiguration reads a kubelet.config.k8s.io/v1beta1
// KubeletConfiguration strictly. Errors are decode.Errors.
func ParseKubeletConfiguration(file string, data []byte) (*kubeletconfig.KubeletConfiguration, error) {
	c := &kubeletconfig.KubeletConfiguration{}
	doc, err := DecodeOther(file, data, nil, kubeletconfig.SchemeGroupVersion.String(), "KubeletConfiguration", c)
	if err != nil {
		return nil, err
	}
	if doc.Err() == nil {
		for _, e := range refusedByKubelet(c.DeepCopy()) {
			doc.Errorf(e.Field, "%s", e.ErrorBody())
		}
	}
	return c, doc.Err()
}
