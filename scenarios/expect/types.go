package expect

import (
	"fmt"
	"reflect"
	"sort"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// typeSystem describes Go structs to CEL by reflection: fields go by their
// JSON names, inlined structs are flattened. It is filled when it is made and
// only read afterwards, so that many runs may share it. JSON names are used since those are what
// people know from manifests.
type typeSystem struct {
	*types.Registry
	byName map[string]*structInfo
	byType map[reflect.Type]*structInfo
	// missed, when set, takes the struct fields that were asked for and do not exist.
	missed *[]missedField
}

// missedField is a field that an expression asks for and its type has not.
type missedField struct{ typeName, field string }

// structInfo is what CEL is told of one Go struct. zero is what an absent object of the type
// reads as.
type structInfo struct {
	name   string
	typ    *types.Type
	zero   any // a pointer to an empty struct, shared by all that is absent
	fields map[string]*types.FieldType
	names  []string // sorted
}

// newTypeSystem describes the structs that the roots are, and whatever they
// reach. Roots are passed as values of their types.
func newTypeSystem(roots ...any) (*typeSystem, error) {
	base, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	s := &typeSystem{Registry: base, byName: map[string]*structInfo{}, byType: map[reflect.Type]*structInfo{}}
	for _, r := range roots {
		s.add(reflect.TypeOf(r))
	}
	return s, nil
}

// typeName is what a Go struct is called in CEL: v1.Pod, meta.v1.ObjectMeta. core's v1 has no
// group in front, as it is what most expressions are about.
func typeName(t reflect.Type) string {
	p := t.PkgPath()
	switch {
	case p == "k8s.io/api/core/v1":
		return "v1." + t.Name()
	case strings.HasPrefix(p, "k8s.io/api/"):
		return strings.ReplaceAll(strings.TrimPrefix(p, "k8s.io/api/"), "/", ".") + "." + t.Name()
	case strings.HasPrefix(p, "k8s.io/apimachinery/pkg/apis/"):
		return strings.ReplaceAll(strings.TrimPrefix(p, "k8s.io/apimachinery/pkg/apis/"), "/", ".") + "." + t.Name()
	}
	return "drydock." + t.Name()
}

// add describes a struct once. It is entered before its fields are looked at,
// since types contain each other.
func (s *typeSystem) add(t reflect.Type) *structInfo {
	if i := s.byType[t]; i != nil {
		return i
	}
	i := &structInfo{name: typeName(t), zero: reflect.New(t).Interface(), fields: map[string]*types.FieldType{}}
	i.typ = types.NewObjectType(i.name)
	s.byType[t], s.byName[i.name] = i, i
	s.addFields(i, t, nil)
	sort.Strings(i.names)
	return i
}

// addFields describes the fields of t, which lies at index within the struct.
// Fields of types that CEL can't see are left out. A field that an embedded struct has as well
// counts once, the outer one first.
func (s *typeSystem) addFields(i *structInfo, t reflect.Type, index []int) {
	for n := range t.NumField() {
		f := t.Field(n)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		// A new slice each time: fields would overwrite each other's in a shared
		// one.
		at := append(append([]int(nil), index...), n)
		if f.Anonymous && (name == "" || strings.Contains(opts, "inline")) && f.Type.Kind() == reflect.Struct {
			s.addFields(i, f.Type, at)
			continue
		}
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		c := s.convert(f.Type)
		if c == nil || i.fields[name] != nil {
			continue
		}
		i.names = append(i.names, name)
		i.fields[name] = &types.FieldType{
			Type: c.typ,
			IsSet: func(target any) bool {
				v, ok := field(target, at)
				return ok && present(v)
			},
			GetFrom: func(target any) (any, error) {
				v, ok := field(target, at)
				if !ok {
					return nil, fmt.Errorf("no such field %q in %T", name, target)
				}
				return c.get(v), nil
			},
		}
	}
}

// field returns the field of a pointer to a struct. Most lie directly in it,
// which needs no walk.
func field(target any, index []int) (reflect.Value, bool) {
	v := reflect.ValueOf(target)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	if len(index) == 1 {
		return v.Elem().Field(index[0]), true
	}
	return v.Elem().FieldByIndex(index), true
}

// present reports whether has() is true of a value. It is what omitempty leaves out, but for
// empty structs.
func present(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() > 0
	}
	return !v.IsZero()
}

// conversion is how values of one Go type are seen from CEL. Conversions are made once for each
// type, and used for all values.
type conversion struct {
	typ *types.Type
	// get returns a ref.Val, or a pointer to a known struct. v is addressable,
	// unless it is of a kind that needs no address.
	get func(v reflect.Value) any
}

var (
	typeTime      = reflect.TypeFor[metav1.Time]()
	typeMicroTime = reflect.TypeFor[metav1.MicroTime]()
	typeMetaDur   = reflect.TypeFor[metav1.Duration]()
	typeDuration  = reflect.TypeFor[time.Duration]()
	typeQuantity  = reflect.TypeFor[resource.Quantity]()
	typeIntOrStr  = reflect.TypeFor[intstr.IntOrString]()
)

// convert returns nil for types that expressions cannot see. A nil pointer reads as the zero
// value, so chains of fields never fail.
func (s *typeSystem) convert(t reflect.Type) *conversion {
	if c := convertLeaf(t); c != nil {
		return c
	}
	switch t.Kind() {
	case reflect.Pointer:
		elem := s.convert(t.Elem())
		if elem == nil {
			return nil
		}
		zero := reflect.New(t.Elem()).Elem()
		return &conversion{elem.typ, func(v reflect.Value) any {
			if v.IsNil() {
				return elem.get(zero)
			}
			return elem.get(v.Elem())
		}}
	case reflect.Struct:
		// Raw extensions and the fields of managedFields can hold anything, which
		// no type describes.
		if t.PkgPath() == "k8s.io/apimachinery/pkg/runtime" || t == reflect.TypeFor[metav1.FieldsV1]() {
			return nil
		}
		return &conversion{s.add(t).typ, func(v reflect.Value) any {
			// The elements of a map have no address.
			if !v.CanAddr() {
				p := reflect.New(t)
				p.Elem().Set(v)
				return p.Interface()
			}
			return v.Addr().Interface()
		}}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &conversion{types.BytesType, func(v reflect.Value) any { return types.Bytes(v.Bytes()) }}
		}
		elem := s.convert(t.Elem())
		if elem == nil {
			return nil
		}
		return &conversion{types.NewListType(elem.typ), func(v reflect.Value) any { return &listVal{s, elem, v} }}
	case reflect.Map:
		elem := s.convert(t.Elem())
		if elem == nil || t.Key().Kind() != reflect.String {
			return nil
		}
		return &conversion{types.NewMapType(types.StringType, elem.typ), func(v reflect.Value) any { return &mapVal{s, elem, v} }}
	}
	return nil
}

// convertLeaf converts the types that have no parts. Times, durations, quantities and IntOrString
// have CEL types of their own.
func convertLeaf(t reflect.Type) *conversion {
	switch t {
	case typeTime:
		return &conversion{types.TimestampType, func(v reflect.Value) any { return types.Timestamp{Time: v.Interface().(metav1.Time).Time} }}
	case typeMicroTime:
		return &conversion{types.TimestampType, func(v reflect.Value) any { return types.Timestamp{Time: v.Interface().(metav1.MicroTime).Time} }}
	case typeMetaDur:
		return &conversion{types.DurationType, func(v reflect.Value) any { return types.Duration{Duration: v.Interface().(metav1.Duration).Duration} }}
	case typeDuration:
		return &conversion{types.DurationType, func(v reflect.Value) any { return types.Duration{Duration: time.Duration(v.Int())} }}
	case typeQuantity:
		// A copy: a quantity remembers its text when it is first printed,
		// and objects are shared.
		return &conversion{apiservercel.QuantityType, func(v reflect.Value) any {
			return apiservercel.Quantity{Quantity: new(v.Interface().(resource.Quantity).DeepCopy())}
		}}
	case typeIntOrStr:
		return &conversion{types.DynType, func(v reflect.Value) any {
			x := v.Interface().(intstr.IntOrString)
			if x.Type == intstr.String {
				return types.String(x.StrVal)
			}
			return types.Int(x.IntVal)
		}}
	}
	switch t.Kind() {
	case reflect.String:
		return &conversion{types.StringType, func(v reflect.Value) any { return types.String(v.String()) }}
	case reflect.Bool:
		return &conversion{types.BoolType, func(v reflect.Value) any { return types.Bool(v.Bool()) }}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &conversion{types.IntType, func(v reflect.Value) any { return types.Int(v.Int()) }}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &conversion{types.UintType, func(v reflect.Value) any { return types.Uint(v.Uint()) }}
	case reflect.Float32, reflect.Float64:
		return &conversion{types.DoubleType, func(v reflect.Value) any { return types.Double(v.Float()) }}
	}
	return nil
}

// FindStructType implements types.Provider.
func (s *typeSystem) FindStructType(name string) (*types.Type, bool) {
	if i := s.byName[name]; i != nil {
		return types.NewTypeTypeWithParam(i.typ), true
	}
	return s.Registry.FindStructType(name)
}

// FindIdent implements types.Provider.
func (s *typeSystem) FindIdent(name string) (ref.Val, bool) {
	if i := s.byName[name]; i != nil {
		return types.NewTypeTypeWithParam(i.typ), true
	}
	return s.Registry.FindIdent(name)
}

// FindStructFieldNames implements types.Provider.
func (s *typeSystem) FindStructFieldNames(name string) ([]string, bool) {
	if i := s.byName[name]; i != nil {
		return i.names, true
	}
	return s.Registry.FindStructFieldNames(name)
}

// FindStructFieldType implements types.Provider.
func (s *typeSystem) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	i := s.byName[name]
	if i == nil {
		return s.Registry.FindStructFieldType(name, field)
	}
	f, ok := i.fields[field]
	if !ok && s.missed != nil {
		*s.missed = append(*s.missed, missedField{name, field})
	}
	return f, ok
}

// NewValue implements types.Provider: expressions make no objects.
func (s *typeSystem) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if s.byName[name] != nil {
		return types.NewErr("an expression cannot make a %s", name)
	}
	return s.Registry.NewValue(name, fields)
}

// NativeToValue implements types.Adapter. Pointers to known structs become objects; everything
// else is CEL's to convert.
func (s *typeSystem) NativeToValue(v any) ref.Val {
	if r, ok := v.(ref.Val); ok {
		return r
	}
	t := reflect.TypeOf(v)
	if t != nil && t.Kind() == reflect.Pointer {
		if i := s.byType[t.Elem()]; i != nil {
			return &objVal{i, v}
		}
	}
	return s.Registry.NativeToValue(v)
}
