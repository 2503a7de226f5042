package facade

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/versioning"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// customSerializer is the runtime.NegotiatedSerializer of custom resources, which are
// served as JSON and YAML. It mirrors unstructuredNegotiatedSerializer of
// k8s.io/apiextensions-apiserver (pkg/apiserver/customresource_handler.go).
type customSerializer struct {
	types    goTypes
	creater  runtime.ObjectCreater
	typer    runtime.ObjectTyper
	defaults runtime.ObjectDefaulter
	coerce   func(obj apiserver.Object, tell bool) ([]string, error)
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (s customSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	with := func(o json.SerializerOptions) runtime.Serializer {
		return json.NewSerializerWithOptions(json.DefaultMetaFactory, s.creater, s.typer, o)
	}
	return []runtime.SerializerInfo{{
		MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json", EncodesAsText: true,
		Serializer: with(json.SerializerOptions{}), PrettySerializer: with(json.SerializerOptions{Pretty: true}), StrictSerializer: with(json.SerializerOptions{Strict: true}),
		StreamSerializer: &runtime.StreamSerializerInfo{EncodesAsText: true, Serializer: with(json.SerializerOptions{}), Framer: json.Framer},
	}, {
		MediaType: runtime.ContentTypeYAML, MediaTypeType: "application", MediaTypeSubType: "yaml", EncodesAsText: true,
		Serializer: with(json.SerializerOptions{Yaml: true}), StrictSerializer: with(json.SerializerOptions{Yaml: true, Strict: true}),
	}}
}

// EncoderForVersion implements runtime.NegotiatedSerializer.
func (s customSerializer) EncoderForVersion(e runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	return versioning.NewCodec(e, nil, sameVersion{}, s.types.scheme, s.types.scheme, s.defaults, gv, nil, "custom resources")
}

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (s customSerializer) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	serializer, ok := d.(*json.Serializer)
	d = coercingDecoder{d, s.coerce, ok && serializer.IsStrict()}
	return versioning.NewCodec(nil, d, sameVersion{}, s.creater, s.typer, s.defaults, nil, gv, "custom resources")
}

// coercingDecoder drops what the schema of what it decodes doesn't know, and tells it as
// a mistake where decoding is strict (schemaCoercingDecoder).
type coercingDecoder struct {
	runtime.Decoder
	coerce func(obj apiserver.Object, tell bool) ([]string, error)
	strict bool
}

// Decode implements runtime.Decoder.
func (d coercingDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	var mistakes []error
	obj, gvk, err := d.Decoder.Decode(data, defaults, into)
	if err != nil {
		strict, ok := runtime.AsStrictDecodingError(err)
		if !ok || obj == nil {
			return nil, gvk, err
		}
		mistakes = strict.Errors()
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		unknown, err := d.coerce(u, d.strict)
		if err != nil {
			return nil, gvk, err
		}
		for _, path := range unknown {
			mistakes = append(mistakes, fmt.Errorf("unknown field %q", path))
		}
	}
	if d.strict && len(mistakes) > 0 {
		return obj, gvk, runtime.NewStrictDecodingError(mistakes)
	}
	return obj, gvk, nil
}
