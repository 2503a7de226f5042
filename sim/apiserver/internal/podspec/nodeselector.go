package podspec

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateNodeSelector checks what selects the nodes that something else than a pod
// is for: a volume, a slice of devices (ValidateNodeSelector). Without a term it would
// select none.
func ValidateNodeSelector(s *v1.NodeSelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	terms := path.Child("nodeSelectorTerms")
	if len(s.NodeSelectorTerms) == 0 {
		errs = append(errs, field.Required(terms, "must have at least one node selector term"))
	}
	for i := range s.NodeSelectorTerms {
		errs = append(errs, validateSelectorTerm(&s.NodeSelectorTerms[i], terms.Index(i))...)
		errs = append(errs, validateSelectorValues(&s.NodeSelectorTerms[i], terms.Index(i))...)
	}
	return errs
}
