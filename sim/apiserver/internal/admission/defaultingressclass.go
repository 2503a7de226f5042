package admission

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// legacyIngressClass is the annotation that said an ingress's class before its spec did.
const legacyIngressClass = "kubernetes.io/ingress.class"

// defaultIngressClass gives an ingress that names no class the default one, of several
// the newest (plugin/pkg/admission/network/defaultingressclass).
func (p *Plugins) defaultIngressClass(r *Request) error {
	ingress := r.Object.(*networkingv1.Ingress)
	if _, ok := ingress.Annotations[legacyIngressClass]; ok || ingress.Spec.IngressClassName != nil {
		return nil
	}
	var class *networkingv1.IngressClass
	p.cluster.Each(kinds.IngressClass, func(o kind.Object) bool {
		if c := o.(*networkingv1.IngressClass); c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" && (class == nil || newer(c, class)) {
			class = c
		}
		return true
	})
	if class != nil {
		ingress.Spec.IngressClassName = new(class.Name)
	}
	return nil
}
