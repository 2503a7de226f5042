package kinds

import (
	v1 "k8s.io/api/core/v1"
	selectable "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// Secret is the kind of secrets, which are config maps with a type and stricter
// keepers.
const Secret kind.Kind = "Secret"

// secret returns the row of Secret (pkg/registry/core/secret/strategy.go).
func secret() *kind.Info {
	return &kind.Info{
		Kind: Secret, Version: "v1", Resource: "secrets", Namespaced: true, ChecksMetaAgain: true, Watch: kind.ByName,
		Strategy: &kind.Typed[v1.Secret, *v1.Secret]{
			Fields:      func(s *v1.Secret) selectable.Set { return selectable.Set{"type": string(s.Type)} },
			Defaults:    setSecretDefaults,
			Check:       validateSecret,
			CheckUpdate: validateSecretUpdate,
		},
	}
}

// validateSecret is ValidateSecret, with the keys that the types known to kubelets
// and ingresses must have.
func validateSecret(s *v1.Secret) field.ErrorList {
	var errs field.ErrorList
	total := 0
	for _, k := range fields.SortedKeys(s.Data) {
		errs = append(errs, validateConfigKey(k, field.NewPath("data"))...)
		total += len(s.Data[k])
	}
	if total > maxConfigBytes {
		errs = append(errs, field.TooLong(field.NewPath("data"), "", maxConfigBytes))
	}
	// Of other types the API knows nothing.
	required := map[v1.SecretType][]string{
		v1.SecretTypeDockerConfigJson: {v1.DockerConfigJsonKey},
		v1.SecretTypeDockercfg:        {v1.DockerConfigKey},
		v1.SecretTypeTLS:              {v1.TLSCertKey, v1.TLSPrivateKeyKey},
	}
	for _, k := range required[s.Type] {
		if _, ok := s.Data[k]; !ok {
			errs = append(errs, field.Required(field.NewPath("data").Key(k), ""))
		}
	}
	return errs
}

// setSecretDefaults types a secret and takes in stringData, which is only written.
func setSecretDefaults(s *v1.Secret) {
	fields.Default(&s.Type, v1.SecretTypeOpaque)
	for k, v := range s.StringData { //drydock:unordered fills a map
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[k] = []byte(v)
	}
	s.StringData = nil
}

// validateSecretUpdate is ValidateSecretUpdate: as of a config map, and the type
// stays.
func validateSecretUpdate(s, old *v1.Secret, _ string) field.ErrorList {
	errs := append(validateSecret(s), fields.Immutable(s.Type, old.Type, field.NewPath("type"))...)
	if old.Immutable == nil || !*old.Immutable {
		return errs
	}
	errs = append(errs, staysFrozen(s.Immutable)...)
	return append(errs, frozen(s.Data, old.Data, "data")...)
}
