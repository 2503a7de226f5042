package policy

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Validating is a compiled ValidatingAdmissionPolicy.
type Validating struct{ v validating.Validator }

// Result is what a policy says of a request.
type Result = validating.ValidateResult

// NewValidating compiles a policy. It costs milliseconds.
func NewValidating(p *admissionregistrationv1.ValidatingAdmissionPolicy) (*Validating, error) {
	c, err := newCompiler()
	if err != nil {
		return nil, err
	}
	vars := plugincel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	c.CompileAndStoreVariables(variables(p.Spec.Variables), vars, environment.StoredExpressions)
	compile := func(list []plugincel.ExpressionAccessor, vars plugincel.OptionalVariableDeclarations) plugincel.ConditionEvaluator {
		return c.CompileCondition(list, vars, environment.StoredExpressions)
	}
	rules, messages, audits := []plugincel.ExpressionAccessor{}, []plugincel.ExpressionAccessor{}, []plugincel.ExpressionAccessor{}
	for _, v := range p.Spec.Validations {
		rules = append(rules, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		var message plugincel.ExpressionAccessor
		if v.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
		messages = append(messages, message)
	}
	for _, a := range p.Spec.AuditAnnotations {
		audits = append(audits, &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression})
	}
	messageVars := vars
	messageVars.HasAuthorizer = false
	return &Validating{validating.NewValidator(compile(rules, vars), conditions(c, p.Spec.MatchConditions, vars, p.Spec.FailurePolicy, "policy", p.Name),
		compile(audits, vars), compile(messages, messageVars), p.Spec.FailurePolicy, nil)}, nil
}

// Validate asks a policy about a request, with a parameter or nil.
func (v *Validating) Validate(in *Input, param runtime.Object) Result {
	a := in.attributes(in.Object)
	return v.v.Validate(context.Background(), a.GetResource(), a, param, in.Namespace, celconfig.RuntimeCELCostBudget, authorizerfactory.NewAlwaysAllowAuthorizer())
}

// conditions are compiled match conditions; nil: there are none.
func conditions(c *plugincel.CompositedCompiler, list []admissionregistrationv1.MatchCondition, vars plugincel.OptionalVariableDeclarations, failure *admissionregistrationv1.FailurePolicyType, what, name string) matchconditions.Matcher {
	if len(list) == 0 {
		return nil
	}
	all := make([]plugincel.ExpressionAccessor, len(list))
	for i := range list {
		all[i] = (*matchconditions.MatchCondition)(&list[i])
	}
	return matchconditions.NewMatcher(c.CompileCondition(all, vars, environment.StoredExpressions), failure, what, "validate", name)
}

func variables(list []admissionregistrationv1.Variable) []plugincel.NamedExpressionAccessor {
	out := make([]plugincel.NamedExpressionAccessor, len(list))
	for i, v := range list {
		out[i] = &validating.Variable{Name: v.Name, Expression: v.Expression}
	}
	return out
}

// Conditions are the compiled match conditions of a webhook.
type Conditions struct{ m matchconditions.Matcher }

// NewConditions compiles a webhook's conditions.
func NewConditions(list []admissionregistrationv1.MatchCondition, failure *admissionregistrationv1.FailurePolicyType, name string) (*Conditions, error) {
	c, err := newCompiler()
	if err != nil {
		return nil, err
	}
	return &Conditions{conditions(c, list, plugincel.OptionalVariableDeclarations{HasAuthorizer: true}, failure, "webhook", name)}, nil
}

// Match reports whether a request fulfils the conditions.
func (c *Conditions) Match(in *Input) (bool, error) {
	if c.m == nil {
		return true, nil
	}
	r := c.m.Match(context.Background(), in.attributes(in.Object), nil, authorizerfactory.NewAlwaysAllowAuthorizer())
	return r.Matches, r.Error
}

// CodeOf is the code of a refusal's reason (reasonToCode).
func CodeOf(r metav1.StatusReason) int32 {
	switch r {
	case metav1.StatusReasonForbidden:
		return 403
	case metav1.StatusReasonUnauthorized:
		return 401
	case metav1.StatusReasonRequestEntityTooLarge:
		return 413
	}
	return 422
}
