package kinds

import (
	"crypto/tls"
	"encoding/json"
	"time"

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
		Kind: Secret, Version: "v1", Resource: "secrets", Namespaced: true, Meta: kind.MetaAgain, Watch: kind.ByName,
		Strategy: &kind.Typed[v1.Secret, *v1.Secret]{
			Fields:      func(s *v1.Secret) selectable.Set { return selectable.Set{"type": string(s.Type)} },
			Defaults:    setSecretDefaults,
			Check:       validateSecret,
			CheckUpdate: validateSecretUpdate,
			Warn:        secretWarnings,
			Table:       secretTable(),
		},
	}
}

func secretTable() []kind.Column[v1.Secret] {
	doc := v1.Secret{}.SwaggerDoc()
	return []kind.Column[v1.Secret]{
		kind.NameColumn[v1.Secret](),
		{Name: "Type", Type: "string", Description: doc["type"], Cell: func(s *v1.Secret, _ time.Time) any { return string(s.Type) }},
		{Name: "Data", Type: "string", Description: doc["data"], Cell: func(s *v1.Secret, _ time.Time) any { return int64(len(s.Data)) }},
		kind.AgeColumn[v1.Secret](),
	}
}

// validateSecret is ValidateSecret.
func validateSecret(s *v1.Secret) field.ErrorList {
	var errs field.ErrorList
	data := field.NewPath("data")
	total := 0
	for _, k := range fields.SortedKeys(s.Data) {
		errs = append(errs, validateConfigKey(k, data)...)
		total += len(s.Data[k])
	}
	if total > maxConfigBytes {
		errs = append(errs, field.TooLong(data, "", maxConfigBytes))
	}
	return append(errs, validateSecretType(s, data)...)
}

// validateSecretType checks that a secret has what readers of its type look for. Other
// types say nothing to the API.
func validateSecretType(s *v1.Secret, data *field.Path) field.ErrorList {
	var errs field.ErrorList
	has := func(key string) bool { _, ok := s.Data[key]; return ok }
	missing := func(keys ...string) {
		for _, k := range keys {
			errs = append(errs, field.Required(data.Key(k), ""))
		}
	}
	switch s.Type {
	case v1.SecretTypeServiceAccountToken: // the rest may come from the token controller
		if s.Annotations[v1.ServiceAccountNameKey] == "" {
			errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key(v1.ServiceAccountNameKey), ""))
		}
	case v1.SecretTypeDockercfg, v1.SecretTypeDockerConfigJson:
		key := map[v1.SecretType]string{v1.SecretTypeDockercfg: v1.DockerConfigKey, v1.SecretTypeDockerConfigJson: v1.DockerConfigJsonKey}[s.Type]
		if !has(key) {
			missing(key)
		} else if err := json.Unmarshal(s.Data[key], &map[string]any{}); err != nil {
			errs = append(errs, field.Invalid(data.Key(key), "<secret contents redacted>", err.Error()))
		}
	case v1.SecretTypeBasicAuth: // either will do
		if !has(v1.BasicAuthUsernameKey) && !has(v1.BasicAuthPasswordKey) {
			missing(v1.BasicAuthUsernameKey, v1.BasicAuthPasswordKey)
		}
	case v1.SecretTypeSSHAuth:
		if len(s.Data[v1.SSHAuthPrivateKey]) == 0 {
			missing(v1.SSHAuthPrivateKey)
		}
	case v1.SecretTypeTLS:
		for _, k := range []string{v1.TLSCertKey, v1.TLSPrivateKeyKey} {
			if !has(k) {
				missing(k)
			}
		}
	}
	return errs
}

// secretWarnings tells of a certificate that is none, or has another key
// (warningsForSecret).
func secretWarnings(s, _ *v1.Secret, _ string) []string {
	if s.Type != v1.SecretTypeTLS {
		return nil
	}
	if _, err := tls.X509KeyPair(s.Data[v1.TLSCertKey], s.Data[v1.TLSPrivateKeyKey]); err != nil {
		return []string{err.Error()}
	}
	return nil
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
