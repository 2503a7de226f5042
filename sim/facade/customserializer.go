package facade

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/versioning"
)

// customSerializer is the runtime.NegotiatedSerializer of custom resources, which are
// served as JSON and YAML. It mirrors unstructuredNegotiatedSerializer of
// k8s.io/apiextensions-apiserver (pkg/apiserver/customresource_handler.go).
type customSerializer struct {
	types    goTypes
	creater  runtime.ObjectCreater
	typer    runtime.ObjectTyper
	defaults runtime.ObjectDefaulter
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
	return versioning.NewCodec(nil, d, sameVersion{}, s.creater, s.typer, s.defaults, nil, gv, "custom resources")
}
