package facade

import (
	"context"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// review is a kind of questions: who creates an object is answered by it, and nothing
// is stored. Everybody may do everything, as with upstream's authorization mode
// AlwaysAllow.
type review struct {
	f       *Facade
	gvk     schema.GroupVersionKind
	storage *storage
	// answer makes the answer of a question, which may be the question itself.
	answer func(ctx context.Context, f *Facade, question runtime.Object) (runtime.Object, error)
}

var _ rest.Creater = (*review)(nil)

// New implements rest.Storage.
func (r *review) New() runtime.Object {
	obj, err := r.f.types.scheme.New(r.gvk)
	if err != nil {
		panic(fmt.Sprintf("facade: %v", err)) // reviewKinds names a kind that clients don't know
	}
	return obj
}

// Destroy implements rest.Storage.
func (*review) Destroy() {}

// Create implements rest.Creater.
func (r *review) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (out runtime.Object, err error) {
	err = r.storage.do(ctx, func(api *apiserver.Server) error {
		if err := validate(ctx, obj); err != nil {
			return err
		}
		if m, ok := obj.(metav1.Object); ok {
			stampFields(m, nil, api.Loop().Now())
		}
		out, err = r.answer(ctx, r.f, obj)
		return err
	})
	return out, err
}

// addReviews serves the kinds of questions (pkg/registry/authorization and
// pkg/registry/authentication).
func (f *Facade) addReviews() error {
	const authorization, authentication = authorizationv1.GroupName, authenticationv1.GroupName
	for _, k := range []struct {
		group, kind string
		namespaced  bool
		answer      func(ctx context.Context, f *Facade, question runtime.Object) (runtime.Object, error)
	}{
		{authorization, "SubjectAccessReview", false, reviewAccess},
		{authorization, "SelfSubjectAccessReview", false, reviewOwnAccess},
		{authorization, "LocalSubjectAccessReview", true, reviewLocalAccess},
		{authorization, "SelfSubjectRulesReview", false, reviewRules},
		{authentication, "SelfSubjectReview", false, reviewSelf},
		{authentication, "TokenReview", false, reviewToken},
	} {
		row := &apiserver.KindInfo{Kind: apiserver.Kind(k.kind), Group: k.group, Version: "v1", Resource: strings.ToLower(k.kind) + "s", Namespaced: k.namespaced}
		make := func(s *storage) virtualKind {
			return virtualKind{create: &review{f, row.GroupVersionKind(), s, k.answer}}
		}
		if err := f.serveVirtual(row, make); err != nil {
			return err
		}
	}
	return nil
}

// invalidReview is the refusal of a question, which upstream names by its group only.
func invalidReview(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: authorizationv1.GroupName}, "", errs)
}

func reviewAccess(_ context.Context, _ *Facade, question runtime.Object) (runtime.Object, error) {
	r := question.(*authorizationv1.SubjectAccessReview)
	errs := append(validateAccess(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes), validateSubject(&r.Spec)...)
	if err := invalidReview(append(errs, validateBare(r.ObjectMeta, "must be empty")...)); err != nil {
		return nil, err
	}
	r.Status = allowed(r.Spec.ResourceAttributes)
	return r, nil
}

func reviewOwnAccess(_ context.Context, _ *Facade, question runtime.Object) (runtime.Object, error) {
	r := question.(*authorizationv1.SelfSubjectAccessReview)
	errs := append(validateAccess(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes), validateBare(r.ObjectMeta, "must be empty")...)
	if err := invalidReview(errs); err != nil {
		return nil, err
	}
	r.Status = allowed(r.Spec.ResourceAttributes)
	return r, nil
}

func reviewLocalAccess(ctx context.Context, _ *Facade, question runtime.Object) (runtime.Object, error) {
	r := question.(*authorizationv1.LocalSubjectAccessReview)
	spec := field.NewPath("spec")
	errs := append(validateAccess(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes), validateSubject(&r.Spec)...)
	bare := r.ObjectMeta
	bare.Namespace = ""
	errs = append(errs, validateBare(bare, "must be empty except for namespace")...)
	if a := r.Spec.ResourceAttributes; a != nil && a.Namespace != r.Namespace {
		errs = append(errs, field.Invalid(spec.Child("resourceAttributes.namespace"), a.Namespace, "must match metadata.namespace"))
	}
	if a := r.Spec.NonResourceAttributes; a != nil {
		errs = append(errs, field.Invalid(spec.Child("nonResourceAttributes"), apiserver.GoNames(a), "disallowed on this kind of request"))
	}
	if err := invalidReview(errs); err != nil {
		return nil, err
	}
	if ns := request.NamespaceValue(ctx); ns != r.Namespace {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("spec.resourceAttributes.namespace must match namespace: %v", ns))
	}
	r.Status = allowed(r.Spec.ResourceAttributes)
	return r, nil
}

// validateAccess is what the specs of all reviews of access have in common
// (pkg/apis/authorization/validation).
func validateAccess(resource *authorizationv1.ResourceAttributes, other *authorizationv1.NonResourceAttributes) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	switch {
	case resource != nil && other != nil:
		errs = append(errs, field.Invalid(spec.Child("nonResourceAttributes"), apiserver.GoNames(other), "cannot be specified in combination with resourceAttributes"))
	case resource == nil && other == nil:
		errs = append(errs, field.Invalid(spec.Child("resourceAttributes"), nil, "exactly one of nonResourceAttributes or resourceAttributes must be specified"))
	}
	if resource == nil {
		return errs
	}
	either := func(raw string, requirements int, path *field.Path) {
		if raw != "" && requirements > 0 {
			errs = append(errs, field.Invalid(path.Child("rawSelector"), raw, "may not specified at the same time as requirements"))
		}
		if raw == "" && requirements == 0 {
			errs = append(errs, field.Required(path.Child("requirements"), fmt.Sprintf("when %s is specified, requirements or rawSelector is required", path)))
		}
	}
	if s := resource.FieldSelector; s != nil {
		path := spec.Child("resourceAttributes", "fieldSelector")
		either(s.RawSelector, len(s.Requirements), path)
		for i := range s.Requirements {
			errs = append(errs, metavalidation.ValidateFieldSelectorRequirement(s.Requirements[i], metavalidation.FieldSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}, path.Child("requirements").Index(i))...)
		}
	}
	if s := resource.LabelSelector; s != nil {
		path := spec.Child("resourceAttributes", "labelSelector")
		either(s.RawSelector, len(s.Requirements), path)
		for i := range s.Requirements {
			errs = append(errs, metavalidation.ValidateLabelSelectorRequirement(s.Requirements[i], metavalidation.LabelSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}, path.Child("requirements").Index(i))...)
		}
	}
	return errs
}

// validateSubject requires that a review says about whom it is.
func validateSubject(s *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	if s.User == "" && len(s.Groups) == 0 {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "user"), s.User, "at least one of user or group must be specified")}
	}
	return nil
}

// validateBare requires that metadata says nothing.
func validateBare(m metav1.ObjectMeta, text string) field.ErrorList {
	full := m
	m.ManagedFields = nil
	if equality.Semantic.DeepEqual(m, metav1.ObjectMeta{}) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), full, text)}
}

// allowed is the answer to who asks for access, with what of the question was not
// understood (BuildEvaluationError).
func allowed(a *authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
	st := authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	if a == nil {
		return st
	}
	var texts []string
	if s := a.FieldSelector; s != nil {
		if _, err := fields.ParseSelector(s.RawSelector); err != nil {
			texts = append(texts, "spec.resourceAttributes.fieldSelector ignored due to parse error")
		}
	}
	if s := a.LabelSelector; s != nil {
		if _, err := labels.Parse(s.RawSelector); err != nil {
			texts = append(texts, "spec.resourceAttributes.labelSelector ignored due to parse error")
		}
	}
	st.EvaluationError = strings.Join(texts, "; ")
	return st
}

// reviewRules answers what who asks may do: everything.
func reviewRules(_ context.Context, _ *Facade, question runtime.Object) (runtime.Object, error) {
	if question.(*authorizationv1.SelfSubjectRulesReview).Spec.Namespace == "" {
		return nil, apierrors.NewBadRequest("no namespace on request")
	}
	all := []string{"*"}
	return &authorizationv1.SelfSubjectRulesReview{Status: authorizationv1.SubjectRulesReviewStatus{
		ResourceRules:    []authorizationv1.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}},
		NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: all, NonResourceURLs: all}},
	}}, nil
}

// askedBy writes into a request for a certificate who made it, whatever it says itself
// (PrepareForCreate of pkg/registry/certificates).
func askedBy(ctx context.Context, obj apiserver.Object) {
	csr, ok := obj.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return
	}
	csr.Spec.Username, csr.Spec.UID, csr.Spec.Groups, csr.Spec.Extra = "", "", nil, nil
	who, ok := request.UserFrom(ctx)
	if !ok {
		return
	}
	csr.Spec.Username, csr.Spec.UID, csr.Spec.Groups = who.GetName(), who.GetUID(), who.GetGroups()
	for k, v := range who.GetExtra() {
		if csr.Spec.Extra == nil {
			csr.Spec.Extra = map[string]certificatesv1.ExtraValue{}
		}
		csr.Spec.Extra[k] = v
	}
}

// userInfo is a user as reviews describe one.
func userInfo(who user.Info) authenticationv1.UserInfo {
	out := authenticationv1.UserInfo{Username: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(), Extra: map[string]authenticationv1.ExtraValue{}}
	for k, v := range who.GetExtra() {
		out.Extra[k] = v
	}
	return out
}

// reviewSelf answers who asks.
func reviewSelf(ctx context.Context, f *Facade, _ runtime.Object) (runtime.Object, error) {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewBadRequest("no user present on request")
	}
	return &authenticationv1.SelfSubjectReview{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(f.clock.now())},
		Status:     authenticationv1.SelfSubjectReviewStatus{UserInfo: userInfo(who)},
	}, nil
}

// defaultAudience is whom tokens are for that don't say.
const defaultAudience = "https://kubernetes.default.svc"

// reviewToken answers whose a token is.
func reviewToken(_ context.Context, f *Facade, question runtime.Object) (runtime.Object, error) {
	r := question.(*authenticationv1.TokenReview)
	if r.Spec.Token == "" {
		return nil, apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	r.Status = authenticationv1.TokenReviewStatus{Error: "invalid bearer token"}
	if strings.Count(r.Spec.Token, ".") == 2 {
		who, meant, err := f.serviceAccount(r.Spec.Token, r.Spec.Audiences)
		if err != nil {
			r.Status.Error = "[invalid bearer token, " + err.Error() + "]"
			return r, nil
		}
		r.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: userInfo(who), Audiences: meant}
		return r, nil
	}
	if f.o.Authenticate == nil {
		return r, nil
	}
	if who := f.o.Authenticate(r.Spec.Token); who != nil {
		r.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: userInfo(who), Audiences: r.Spec.Audiences}
		if len(r.Status.Audiences) == 0 {
			r.Status.Audiences = []string{defaultAudience}
		}
	}
	return r, nil
}
