// Package policy compiles and runs the CEL expressions of admission policies and of the
// match conditions of webhooks, with the packages of k8s.io/apiserver that need nothing
// but what they are given.
//
//   - check.go: what is wrong with expressions
//   - match.go: which requests a policy or a webhook is for
//   - validating.go, mutating.go: what policies make of a request
package policy

import (
	"errors"
	"fmt"

	celgo "github.com/google/cel-go/cel"

	"k8s.io/apimachinery/pkg/util/validation/field"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Checker checks the expressions of one policy, or of one webhook. Variables that were
// checked are known in what is checked after them.
type Checker struct {
	compiler *plugincel.CompositedCompiler
	params   bool
}

// NewChecker returns a checker; params says that expressions have parameters.
func NewChecker(params bool) (*Checker, error) {
	c, err := newCompiler()
	if err != nil {
		return nil, err
	}
	return &Checker{c, params}, nil
}

func newCompiler() (*plugincel.CompositedCompiler, error) {
	c, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return nil, fmt.Errorf("CEL compiler: %w", err)
	}
	return c, nil
}

// Condition checks an expression that says yes or no.
func (c *Checker) Condition(text string, path *field.Path) field.ErrorList {
	return c.check(expression{text, []*celgo.Type{celgo.BoolType}}, plugincel.OptionalVariableDeclarations{HasParams: c.params, HasAuthorizer: true}, path)
}

// Message checks an expression that makes a message, AuditValue one that makes the value
// of an annotation.
func (c *Checker) Message(text string, path *field.Path) field.ErrorList {
	return c.check(&validating.MessageExpressionCondition{MessageExpression: text}, plugincel.OptionalVariableDeclarations{HasParams: c.params}, path)
}

// AuditValue: see Message.
func (c *Checker) AuditValue(text string, path *field.Path) field.ErrorList {
	return c.check(&validating.AuditAnnotationCondition{ValueExpression: text}, plugincel.OptionalVariableDeclarations{HasParams: c.params, HasAuthorizer: true}, path)
}

// ApplyConfiguration checks an expression that makes a part of an object, JSONPatch one
// that makes the steps of a patch.
func (c *Checker) ApplyConfiguration(text string, path *field.Path) field.ErrorList {
	return c.check(&patch.ApplyConfigurationCondition{Expression: text}, plugincel.OptionalVariableDeclarations{HasParams: c.params, HasAuthorizer: true, HasPatchTypes: true}, path)
}

// JSONPatch: see ApplyConfiguration.
func (c *Checker) JSONPatch(text string, path *field.Path) field.ErrorList {
	return c.check(&patch.JSONPatchCondition{Expression: text}, plugincel.OptionalVariableDeclarations{HasParams: c.params, HasAuthorizer: true, HasPatchTypes: true}, path)
}

// Variable checks a variable's expression.
func (c *Checker) Variable(name, text string, path *field.Path) field.ErrorList {
	v := &validating.Variable{Name: name, Expression: text}
	result := c.compiler.CompileAndStoreVariable(v, plugincel.OptionalVariableDeclarations{HasParams: c.params, HasAuthorizer: true}, environment.NewExpressions)
	return errorOf(result.Error, text, path)
}

func (c *Checker) check(e plugincel.ExpressionAccessor, vars plugincel.OptionalVariableDeclarations, path *field.Path) field.ErrorList {
	return errorOf(c.compiler.CompileCELExpression(e, vars, environment.NewExpressions).Error, e.GetExpression(), path)
}

// errorOf is convertCELErrorToValidationError (pkg/apis/admissionregistration/validation).
func errorOf(err *apiservercel.Error, text string, path *field.Path) field.ErrorList {
	if err == nil {
		return nil
	}
	switch err.Type {
	case apiservercel.ErrorTypeRequired:
		return field.ErrorList{field.Required(path, err.Detail)}
	case apiservercel.ErrorTypeInvalid:
		return field.ErrorList{field.Invalid(path, text, err.Detail)}
	}
	return field.ErrorList{field.InternalError(path, errors.New(err.Error()))}
}

// expression is one with the types that it may have.
type expression struct {
	text  string
	types []*celgo.Type
}

// GetExpression implements plugincel.ExpressionAccessor.
func (e expression) GetExpression() string { return e.text }

// ReturnTypes implements plugincel.ExpressionAccessor.
func (e expression) ReturnTypes() []*celgo.Type { return e.types }
