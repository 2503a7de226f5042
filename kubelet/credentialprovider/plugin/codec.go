package plugin

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	kubeletconfigv1 "k8s.io/kubelet/config/v1"
	kubeletconfigv1alpha1 "k8s.io/kubelet/config/v1alpha1"
	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"
	credentialproviderapi "k8s.io/kubelet/pkg/apis/credentialprovider"
	credentialproviderv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
	credentialproviderv1alpha1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1alpha1"
	credentialproviderv1beta1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1beta1"
)

// apiVersions are those in which plugins can be asked, sorted.
func apiVersions() []string {
	return []string{
		credentialproviderv1.SchemeGroupVersion.String(), credentialproviderv1alpha1.SchemeGroupVersion.String(), credentialproviderv1beta1.SchemeGroupVersion.String(),
	}
}

// codec reads and writes what plugins are configured by, asked and answer. It may be
// used from several loops.
type codec struct{ factory serializer.CodecFactory }

func newCodec() (*codec, error) {
	scheme := runtime.NewScheme()
	for _, add := range [...]func(*runtime.Scheme) error{
		credentialproviderapi.AddToScheme, credentialproviderv1.AddToScheme, credentialproviderv1alpha1.AddToScheme, credentialproviderv1beta1.AddToScheme,
		kubeletconfigv1.AddToScheme, kubeletconfigv1alpha1.AddToScheme, kubeletconfigv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("the kinds of credential providers: %w", err)
		}
	}
	return &codec{serializer.NewCodecFactory(scheme, serializer.EnableStrict)}, nil
}

// encode writes a request in a version.
func (c *codec) encode(apiVersion string, request *credentialproviderapi.CredentialProviderRequest) ([]byte, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, fmt.Errorf("invalid apiVersion: %q", apiVersion)
	}
	info, ok := runtime.SerializerInfoForMediaType(c.factory.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil, fmt.Errorf("unsupported media type %q", runtime.ContentTypeJSON)
	}
	data, err := runtime.Encode(c.factory.EncoderForVersion(info.Serializer, gv), request)
	if err != nil {
		return nil, fmt.Errorf("error encoding request: %w", err)
	}
	return data, nil
}

// decode reads a response, which has to be of the version of the request. Errors don't
// show what was read: there are credentials in it.
func (c *codec) decode(apiVersion string, data []byte) (*credentialproviderapi.CredentialProviderResponse, error) {
	gvk, err := json.DefaultMetaFactory.Interpret(data)
	if err != nil {
		return nil, fmt.Errorf("error reading GVK from response: %w", err)
	}
	if got := gvk.GroupVersion().String(); got != apiVersion {
		return nil, fmt.Errorf("apiVersion from credential plugin response did not match expected apiVersion:%s, actual apiVersion:%s", apiVersion, got)
	}
	obj, _, err := c.factory.UniversalDecoder().Decode(data, nil, nil)
	if err == nil {
		if r, ok := obj.(*credentialproviderapi.CredentialProviderResponse); ok {
			return r, nil
		}
	}
	return nil, errors.New("error decoding credential provider plugin response from stdout")
}
