package decode

import (
	"errors"
	"sort"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Error is one thing that is wrong with a document, told in one line. It is comparable by value,
// by which sorted drops repetitions.
type Error struct {
	// Pos is where; its File may also be a --set override, without a line.
	Pos Position
	// Path is the field, from the root of its document; it may be empty.
	Path string
	// Message says what is wrong.
	Message string
}

// Error is "file:line:column: field: message", as editors understand it. Editors and CI systems
// jump to what begins with file, line and column.
func (e *Error) Error() string {
	s := e.Message
	if e.Path != "" {
		s = e.Path + ": " + s
	}
	if p := e.Pos.String(); p != "" {
		s = p + ": " + s
	}
	return s
}

// Errors is all that is wrong, by file and line. It is an error itself, and errors.As finds its
// parts through Unwrap.
type Errors []*Error

// Error is one line for each.
func (l Errors) Error() string {
	lines := make([]string, len(l))
	for i, e := range l {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors one by one.
func (l Errors) Unwrap() []error {
	out := make([]error, len(l))
	for i, e := range l {
		out[i] = e
	}
	return out
}

// sorted sorts errors by file and line, and drops repetitions: what several checks find is told once.
// The sort is stable: of one position what was found first stays first.
func (l Errors) sorted() Errors {
	sort.SliceStable(l, func(i, j int) bool {
		a, b := l[i].Pos, l[j].Pos
		if a.File != b.File {
			return a.File < b.File
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
	var out Errors
	for _, e := range l {
		if n := len(out); n > 0 && *out[n-1] == *e {
			continue
		}
		out = append(out, e)
	}
	return out
}

// OneLine makes any text fit into a line. Errors of YAML and of validations have line breaks,
// which would tear a report apart.
func OneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}

// FieldErrors takes an error apart that names fields: an answer of the API
// (Invalid), or an aggregate of field errors. Any other error comes back as one
// without a field. It is for hooks that ask others what they refuse. API validation of upstream
// returns field.ErrorList in an aggregate; the API server of the simulation wraps it as a Status
// of reason Invalid, whose causes have the field and a message but no value. Both come back in
// one form, without the value: messages of scenarios point at it anyway.
func FieldErrors(err error) field.ErrorList {
	if err == nil {
		return nil
	}
	var out field.ErrorList
	var agg utilerrors.Aggregate
	var one *field.Error
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &agg):
		for _, e := range agg.Errors() {
			out = append(out, FieldErrors(e)...)
		}
	case errors.As(err, &one):
		out = append(out, one)
	// A cause's message begins with its type's text, which field.Error would add again.
	case errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0:
		for _, c := range status.Status().Details.Causes {
			t := field.ErrorType(c.Type)
			_, known := fieldErrorTypes()[t]
			// Error types without a text would print as a Go error about themselves.
			if !known {
				t = field.ErrorTypeInternal
			}
			out = append(out, &field.Error{Type: t, Field: c.Field, BadValue: field.OmitValueType{}, Detail: strings.TrimPrefix(strings.TrimPrefix(c.Message, t.String()), ": ")})
		}
	default:
		out = append(out, &field.Error{Type: field.ErrorTypeForbidden, BadValue: field.OmitValueType{}, Detail: err.Error()})
	}
	return out
}

// fieldErrorTypes are the types of field errors that have a text. It must follow the switch of
// field.ErrorType.String in apimachinery.
func fieldErrorTypes() map[field.ErrorType]struct{} {
	return map[field.ErrorType]struct{}{
		field.ErrorTypeNotFound: {}, field.ErrorTypeRequired: {}, field.ErrorTypeDuplicate: {}, field.ErrorTypeInvalid: {},
		field.ErrorTypeNotSupported: {}, field.ErrorTypeForbidden: {}, field.ErrorTypeTooLong: {}, field.ErrorTypeTooMany: {},
		field.ErrorTypeInternal: {}, field.ErrorTypeTypeInvalid: {},
	}
}
