package kinds

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// APIService is the kind that says who serves a group and version. The API makes those
// that it serves itself, where clients come in; a service that would serve another is
// not asked.
const APIService kind.Kind = "APIService"

// apiService returns the row of APIService (kube-aggregator's pkg/registry/apiservice).
// Its name is the version and the group.
func apiService() *kind.Info {
	type service = apiregistrationv1.APIService
	return &kind.Info{
		Kind: APIService, Group: apiregistrationv1.GroupName, Version: "v1", Resource: "apiservices", Categories: []string{"api-extensions"},
		CheckName: roleName, Inert: kind.InertAlways,
		Strategy: &kind.Typed[service, *service]{
			Halves: kind.SpecAndStatus(func(s *service) (*apiregistrationv1.APIServiceSpec, *apiregistrationv1.APIServiceStatus) {
				return &s.Spec, &s.Status
			}),
			Defaults: func(s *service) {
				if ref := s.Spec.Service; ref != nil && ref.Port == nil {
					own := *ref
					own.Port = new(int32(443))
					s.Spec.Service = &own
				}
			},
			// Who is asked in the process is always there.
			Stored: func(now time.Time, s *service) {
				if s.Spec.Service == nil {
					s.Status.Conditions = []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionTrue,
						LastTransitionTime: asjson.Time(now), Reason: "Local", Message: "Local APIServices are always available"}}
				}
			},
			Check: validateAPIService,
			CheckUpdate: func(s, _ *service, sub string) field.ErrorList {
				if sub == "status" {
					return validateAPIServiceStatus(s)
				}
				return validateAPIService(s)
			},
			Table: []kind.Column[service]{
				kind.NameColumn[service](),
				{Name: "Service", Type: "string", Description: "The reference to the service that hosts this API endpoint.", Cell: func(s *service, _ time.Time) any {
					if s.Spec.Service == nil {
						return "Local"
					}
					return s.Spec.Service.Namespace + "/" + s.Spec.Service.Name
				}},
				{Name: "Available", Type: "string", Description: "Whether this service is available.", Cell: func(s *service, _ time.Time) any { return availability(s) }},
				kind.AgeColumn[service](),
			},
		},
	}
}

// availability is how a table says whether a group and version can be reached.
func availability(s *apiregistrationv1.APIService) string {
	for _, c := range s.Status.Conditions {
		if c.Type != apiregistrationv1.Available {
			continue
		}
		if c.Status != apiregistrationv1.ConditionTrue && c.Reason != "" {
			return fmt.Sprintf("%s (%s)", c.Status, c.Reason)
		}
		return string(c.Status)
	}
	return string(apiregistrationv1.ConditionUnknown)
}

// validateAPIService is ValidateAPIService (kube-aggregator's
// pkg/apis/apiregistration/validation).
func validateAPIService(s *apiregistrationv1.APIService) field.ErrorList {
	var errs field.ErrorList
	spec, path := &s.Spec, field.NewPath("spec")
	if name := spec.Version + "." + spec.Group; s.Name != name && len(content.IsPathSegmentName(s.Name)) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), s.Name, fmt.Sprintf("must be `spec.version+\".\"+spec.group`: %q", name)))
	}
	if spec.Group != "" {
		errs = append(errs, fields.DNSName(spec.Group, path.Child("group"))...)
	} else if spec.Version != "v1" {
		errs = append(errs, field.Required(path.Child("group"), "only v1 may have an empty group and it better be legacy kube"))
	}
	errs = append(errs, fields.Invalid(path.Child("version"), spec.Version, validation.IsDNS1035Label(spec.Version))...)
	for _, p := range []struct {
		name        string
		value, most int32
	}{{"groupPriorityMinimum", spec.GroupPriorityMinimum, 20000}, {"versionPriority", spec.VersionPriority, 1000}} {
		if p.value <= 0 || p.value > p.most {
			errs = append(errs, field.Invalid(path.Child(p.name), p.value, fmt.Sprintf("must be positive and less than %d", p.most)))
		}
	}
	ref := spec.Service
	if ref == nil {
		if len(spec.CABundle) > 0 {
			errs = append(errs, field.Invalid(path.Child("caBundle"), fmt.Sprintf("%d bytes", len(spec.CABundle)), "local APIServices may not have a caBundle"))
		}
		if spec.InsecureSkipTLSVerify {
			errs = append(errs, field.Invalid(path.Child("insecureSkipTLSVerify"), true, "local APIServices may not have insecureSkipTLSVerify"))
		}
		return errs
	}
	at := path.Child("service")
	if ref.Namespace == "" {
		errs = append(errs, field.Required(at.Child("namespace"), ""))
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	if texts := validation.IsValidPortNum(int(*ref.Port)); len(texts) > 0 {
		errs = append(errs, field.Invalid(at.Child("port"), *ref.Port, "port is not valid: "+strings.Join(texts, ", ")))
	}
	if spec.InsecureSkipTLSVerify && len(spec.CABundle) > 0 {
		errs = append(errs, field.Invalid(path.Child("insecureSkipTLSVerify"), true, "may not be true if caBundle is present"))
	}
	return errs
}

// validateAPIServiceStatus is ValidateAPIServiceStatus.
func validateAPIServiceStatus(s *apiregistrationv1.APIService) field.ErrorList {
	var errs field.ErrorList
	for i, c := range s.Status.Conditions {
		switch c.Status {
		case apiregistrationv1.ConditionTrue, apiregistrationv1.ConditionFalse, apiregistrationv1.ConditionUnknown:
		default:
			errs = append(errs, field.NotSupported(field.NewPath("status", "conditions").Index(i).Child("status"), c.Status, []apiregistrationv1.ConditionStatus{
				apiregistrationv1.ConditionFalse, apiregistrationv1.ConditionTrue, apiregistrationv1.ConditionUnknown}))
		}
	}
	return errs
}
