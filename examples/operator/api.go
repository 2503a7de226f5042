package operator

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// Shop is a number of pods that greet.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ShopSpec   `json:"spec,omitempty"`
	Status ShopStatus `json:"status,omitempty"`
}

// ShopSpec is what a shop should be.
type ShopSpec struct {
	Replicas int32  `json:"replicas"`
	Greeting string `json:"greeting,omitempty"`
}

// ShopStatus is what a shop is.
type ShopStatus struct {
	Ready int32 `json:"ready"`
	// ObservedGeneration is of the spec that Ready was counted for.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (s *Shop) DeepCopyObject() runtime.Object {
	out := *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// ShopList is a list of shops.
type ShopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Shop `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *ShopList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Shop, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Shop)
	}
	return &out
}

// GroupVersion is that of shops.
var GroupVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}

// NewScheme returns a scheme with shops and what is built in.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := clientscheme.AddToScheme(s); err != nil {
		return nil, err
	}
	s.AddKnownTypes(GroupVersion, &Shop{}, &ShopList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return s, nil
}
