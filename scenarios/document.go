package scenarios

import (
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/fakecri"
)

// Shorthand is what can be written as a scalar besides: Shorthand returns a
// pointer to what that is decoded into.
type Shorthand interface{ Shorthand() any }

// Document is a decoded document of a kind other than Scenario. It is written
// and refused as scenarios are: unknown fields, positions, required and enum
// tags.
type Document struct {
	d   *decoder
	doc *yaml.Node
}

// DecodeDocument decodes the only document of a file into a struct by its json
// tags. What is wrong is collected; Document.Err has it. It returns nil and
// LoadErrors when there is nothing to go on with.
func DecodeDocument(file string, data []byte, apiVersion, kind string, into any) (*Document, error) {
	l := &loader{types: map[reflect.Type]*structType{}, sets: map[*yaml.Node]string{}}
	l.opts.ValidateObject, l.opts.ValidateKubelet, l.opts.ReadFile = refusedByAPI, refusedByKubelet, readFile
	docs := l.parseYAML(file, data)
	if len(l.errs) > 0 {
		return nil, l.errs.sorted()
	}
	d := &decoder{l: l, file: file}
	if len(docs) != 1 {
		d.errorf(nil, &path{}, "want one document of kind %s, there are %d", kind, len(docs))
		return nil, l.errs
	}
	doc, root := docs[0], &path{}
	if doc.Kind != yaml.MappingNode {
		d.mismatch(doc, root, "a "+kind)
		return nil, l.errs
	}
	if k, v := lookup(doc, "kind"), lookup(doc, "apiVersion"); k == nil || v == nil || k.Value != kind || v.Value != apiVersion {
		d.errorf(doc, root, "want a document that begins with apiVersion: %s and kind: %s", apiVersion, kind)
		return nil, l.errs
	}
	d.value(doc, root, reflect.ValueOf(into).Elem())
	return &Document{d, doc}, nil
}

// Errorf notes what is wrong with a field ("spec.classes[0].share").
func (d *Document) Errorf(field, format string, args ...any) {
	d.d.l.errs = append(d.d.l.errs, &LoadError{Pos: d.d.pos(find(d.doc, field)), Path: field, Message: oneLine(fmt.Sprintf(format, args...))})
}

// Err returns all that was found wrong, as LoadErrors, or nil.
func (d *Document) Err() error {
	if len(d.d.l.errs) == 0 {
		return nil
	}
	return d.d.l.errs.sorted()
}

// ParseKubeletConfiguration reads a kubelet.config.k8s.io/v1beta1
// KubeletConfiguration strictly. Errors are LoadErrors.
func ParseKubeletConfiguration(file string, data []byte) (*kubeletconfig.KubeletConfiguration, error) {
	c := &kubeletconfig.KubeletConfiguration{}
	doc, err := DecodeDocument(file, data, kubeletconfig.SchemeGroupVersion.String(), "KubeletConfiguration", c)
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

// RuntimeImages are images as the runtime takes them.
func RuntimeImages(in []Image) []fakecri.Image { return fakeImages(in) }

// ReadFile reads a file of at most 32 MiB.
func ReadFile(name string) ([]byte, error) { return readFile(name) }

// PodCount is how many pods the scenario's timeline creates itself.
func (s *Scenario) PodCount() int { return s.podCount() }
