package images

import (
	"encoding/base64"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// PullCount is what pulls of an image came to, as [Runtime.Pulls] tells of it.
type PullCount struct {
	// Image is its canonical name.
	Image string
	// Pulls counts those that worked, Bytes sums the image's size over those
	// that found it absent.
	Pulls, Bytes int64
}

// CountPull notes a pull that worked; fresh says that the image was absent.
func (st *Store) CountPull(name string, size int64, fresh bool) {
	i := 0
	for i < len(st.Pulled) && st.Pulled[i].Image != name {
		i++
	}
	if i == len(st.Pulled) {
		st.Pulled = append(st.Pulled, PullCount{Image: name})
	}
	st.Pulled[i].Pulls++
	if fresh {
		st.Pulled[i].Bytes += size
	}
}

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
