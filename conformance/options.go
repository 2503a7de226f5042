//go:build linux

package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/conformance/images"
)

// Registry is where the test images come from; images.Registry is one. It is an interface for the
// sake of tests, which have images of other kinds.
type Registry interface {
	// Addr is the host and port that references begin with.
	Addr() string
	// Ref is the full reference of a test image ("drydock-actor:1", "x/drydock-actor:1").
	Ref(image string) string
	// Digest is the digest of the manifest that a test image's name leads to,
	// ConfigDigest that of its configuration.
	Digest(image string) string
	ConfigDigest(image string) string
	// Pulls tells how often a tag of a repository was asked for.
	Pulls(repository string) int
}

var _ Registry = (*images.Registry)(nil)

// Options say what is checked and against what. Only Endpoint is needed. What is
// not said has a default that is safe on a runtime with other guests.
type Options struct {
	// Endpoint is the runtime's socket, "unix:///path" or a path; ImageEndpoint
	// that of its image service, the same unless said.
	Endpoint, ImageEndpoint string
	// Registry has the test images. nil: one is served at TestRegistry (host and
	// port; "" is any port of 127.0.0.1), and references name it as
	// TestRegistryName, if that is not empty.
	Registry                       Registry
	TestRegistry, TestRegistryName string
	// Focus and Skip select checks by name; nil: all, and none.
	Focus, Skip *regexp.Regexp
	// Parallel is how many checks run at once. 0 means DefaultParallel.
	Parallel int
	// Timeout bounds the whole run; 0 means DefaultTimeout.
	Timeout time.Duration
	// Dir takes the kubelets' files; "" means a temporary directory.
	Dir string
	// Progress is told of each check that has ended, one at a time; nil: nobody.
	Progress func(Result)
	// Log takes what went wrong beside the checks; nil drops it.
	Log func(string)
}

// What is meant where Options say nothing.
const (
	DefaultParallel = 8
	DefaultTimeout  = 30 * time.Minute
)

// complete puts in what is meant where nothing is said, and refuses what can't be
// meant. Errors name the command's flags. It changes o, which is the run's own copy.
func (o *Options) complete() error {
	if o.Endpoint == "" {
		return errors.New("--runtime-endpoint: which runtime? A socket is needed, such as unix:///run/containerd/containerd.sock")
	}
	var err error
	if o.Endpoint, err = endpoint("--runtime-endpoint", o.Endpoint); err != nil {
		return err
	}
	if o.ImageEndpoint == "" {
		o.ImageEndpoint = o.Endpoint
	} else if o.ImageEndpoint, err = endpoint("--image-endpoint", o.ImageEndpoint); err != nil {
		return err
	}
	switch {
	case o.Parallel < 0:
		return fmt.Errorf("--parallel: %d is negative", o.Parallel)
	case o.Timeout < 0:
		return fmt.Errorf("--timeout: %v is negative", o.Timeout)
	}
	o.Parallel = cmp.Or(o.Parallel, DefaultParallel)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.Progress == nil {
		o.Progress = func(Result) {}
	}
	return nil
}

// endpoint makes "unix:///path" of a socket's name. A socket that is not there
// may come yet; anything else there won't become one. Only unix sockets are meant: a runtime is
// on the same machine.
func endpoint(flag, s string) (string, error) {
	p := strings.TrimPrefix(s, "unix://")
	if !strings.HasPrefix(p, "/") || len(p) == 1 {
		return "", fmt.Errorf("%s: %q is no socket: unix:///PATH is meant", flag, s)
	}
	info, err := os.Stat(p)
	switch {
	case err == nil && info.Mode()&os.ModeSocket == 0:
		return "", fmt.Errorf("%s: %s is there and is no socket", flag, p)
	case err != nil && !os.IsNotExist(err):
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	return "unix://" + p, nil
}
