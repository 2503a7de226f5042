package images

import (
	"encoding/base64"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Admits reports whether a pull with those credentials is let in.
func (a *ImageAuth) Admits(auth *runtimeapi.AuthConfig) bool {
	if a == nil {
		return true
	}
	if auth.GetAuth() != "" {
		text, err := base64.StdEncoding.DecodeString(auth.Auth)
		return err == nil && strings.TrimRight(string(text), "\x00") == a.Username+":"+a.Password
	}
	return auth.GetUsername() == a.Username && auth.GetPassword() == a.Password
}
