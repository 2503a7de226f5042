package kinds

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// ConfigMap is the kind of config maps. Nodes watch those that their pods name,
// each by itself.
const ConfigMap kind.Kind = "ConfigMap"

// configMap returns the row of ConfigMap (pkg/registry/core/configmap/strategy.go).
func configMap() *kind.Info {
	return &kind.Info{
		Kind: ConfigMap, Version: "v1", Resource: "configmaps", ShortNames: []string{"cm"}, Namespaced: true, Meta: kind.MetaAgain, Watch: kind.ByName,
		Strategy: &kind.Typed[v1.ConfigMap, *v1.ConfigMap]{
			Check:       validateConfigMap,
			CheckUpdate: validateConfigMapUpdate,
			Table:       configMapTable(),
		},
	}
}

func configMapTable() []kind.Column[v1.ConfigMap] {
	return []kind.Column[v1.ConfigMap]{
		kind.NameColumn[v1.ConfigMap](),
		{Name: "Data", Type: "string", Description: v1.ConfigMap{}.SwaggerDoc()["data"], Cell: func(c *v1.ConfigMap, _ time.Time) any {
			return int64(len(c.Data) + len(c.BinaryData))
		}},
		kind.AgeColumn[v1.ConfigMap](),
	}
}

// maxConfigBytes is how much data a config map or a secret may hold.
const maxConfigBytes = 1 << 20

// validateConfigMap is ValidateConfigMap. Text and bytes share their keys, as both
// become files of one volume, and the limit on size.
func validateConfigMap(c *v1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	total := 0
	for _, k := range fields.SortedKeys(c.Data) {
		errs = append(errs, validateConfigKey(k, field.NewPath("data"))...)
		if _, ok := c.BinaryData[k]; ok {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(k), k, "duplicate of key present in binaryData"))
		}
		total += len(c.Data[k])
	}
	for _, k := range fields.SortedKeys(c.BinaryData) {
		errs = append(errs, validateConfigKey(k, field.NewPath("binaryData"))...)
		total += len(c.BinaryData[k])
	}
	// The limit is on data alone, not on what JSON makes of it.
	if total > maxConfigBytes {
		errs = append(errs, field.TooLong(field.NewPath(""), "", maxConfigBytes))
	}
	return errs
}

// validateConfigKey checks a key, which has to do as a file's name.
func validateConfigKey(k string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, fields.Invalid(path.Key(k), k, validation.IsConfigMapKey(k))...)
	return errs
}

// frozen requires data to stay what it was, with the words of an immutable object.
func frozen(now, was any, name string) field.ErrorList {
	if len(fields.Immutable(now, was, field.NewPath(name))) > 0 {
		return field.ErrorList{field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set")}
	}
	return nil
}

// validateConfigMapUpdate is ValidateConfigMapUpdate. Immutable is for ever:
// kubelets stop watching such an object.
func validateConfigMapUpdate(c, old *v1.ConfigMap, _ string) field.ErrorList {
	errs := validateConfigMap(c)
	if old.Immutable == nil || !*old.Immutable {
		return errs
	}
	errs = append(errs, staysFrozen(c.Immutable)...)
	errs = append(errs, frozen(c.Data, old.Data, "data")...)
	return append(errs, frozen(c.BinaryData, old.BinaryData, "binaryData")...)
}

// staysFrozen requires an immutable object to stay so.
func staysFrozen(immutable *bool) field.ErrorList {
	if immutable != nil && *immutable {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set")}
}
