package facade

import (
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"testing"
)

// TestUnreachable: only a connection that was not made is the dialer's error, as in net/http.
func TestUnreachable(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("connect: connection refused"), `Internal error occurred: Get "https://n:10250/pods": dial tcp n:10250: connect: connection refused`},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(80)}, `Internal error occurred: Get "https://n:10250/pods": remote error: tls: internal error`},
	} {
		if got := unreachable("n", &url.URL{Path: "/pods"}, c.err).Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
