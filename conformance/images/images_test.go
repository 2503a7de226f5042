package images

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"go.uber.org/goleak"

	"github.com/drydock-sim/drydock/fakecri/actor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testProgram is a static executable that nobody runs: Linux on x86-64, no
// segments.
func testProgram(t *testing.T) string {
	head := make([]byte, 64)
	copy(head, "\x7fELF\x02\x01\x01")
	head[16], head[18], head[20], head[52], head[54], head[58] = 2, 62, 1, 64, 56, 64
	file := filepath.Join(t.TempDir(), "actor")
	if err := os.WriteFile(file, append(head, make([]byte, 4096)...), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func serve(t *testing.T) *Registry {
	r, err := New(t.Context(), Options{Program: testProgram(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// pull fetches an image and all its blobs.
func pull(t *testing.T, ref string, opts ...remote.Option) (v1.Image, error) {
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	n, err := name.ParseReference(ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	opts = append([]remote.Option{remote.WithTransport(tr), remote.WithRetryBackoff(remote.Backoff{Steps: 1}), remote.WithContext(t.Context())}, opts...)
	img, err := remote.Image(n, opts...)
	if err != nil {
		return nil, err
	}
	return img, validate.Image(img)
}

// What is pulled is what the list says.
func TestServe(t *testing.T) {
	r := serve(t)
	for _, im := range actor.Images() {
		img, err := pull(t, r.Ref(im.Name()), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: Architectures()[0]}))
		if err != nil {
			t.Errorf("%s: %v", im.Name(), err)
			continue
		}
		cfg, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		c := cfg.Config
		if c.User != im.User || !slices.Equal(c.Entrypoint, im.Entrypoint) || !slices.Equal(c.Cmd, im.Cmd) || !slices.Equal(c.Env, im.Env) ||
			c.WorkingDir != im.WorkingDir || c.StopSignal != im.StopSignal || len(c.Labels) != len(im.Labels) || len(c.Volumes) != len(im.Volumes) {
			t.Errorf("%s: configuration %+v", im.Name(), c)
		}
		if id, _ := img.ConfigName(); id.String() != r.ConfigDigest(im.Name()) {
			t.Errorf("%s: id %s, want %s", im.Name(), id, r.ConfigDigest(im.Name()))
		}
		if layers, _ := img.Layers(); len(layers) != 1+len(im.Files) {
			t.Errorf("%s: %d layers", im.Name(), len(layers))
		}
		for _, a := range im.Aliases {
			if r.Digest(im.Repository+":"+a) != r.Digest(im.Name()) {
				t.Errorf("%s: %s is another image", im.Name(), a)
			}
		}
	}
	if r.Digest("drydock-actor:1") == r.Digest("drydock-actor:2") || r.ConfigDigest("drydock-actor:1") == r.ConfigDigest("drydock-actor:2") {
		t.Error("1 and 2 are the same image")
	}
	if _, err := pull(t, r.Ref("drydock-actor:1@")); err != nil {
		t.Errorf("by digest: %v", err)
	}
	if again := serve(t); again.Digest("drydock-actor:index") != r.Digest("drydock-actor:index") {
		t.Error("the digests are others the next time")
	}
}

func TestRewrite(t *testing.T) {
	r := &Registry{addr: "127.0.0.1:5000", digests: map[string]string{"drydock-actor:1": "sha256:aa"}}
	for in, want := range map[string]string{
		"drydock-actor:1":             "127.0.0.1:5000/drydock/drydock-actor:1",
		"drydock-actor":               "127.0.0.1:5000/drydock/drydock-actor",
		"drydock-actor:1@":            "127.0.0.1:5000/drydock/drydock-actor@sha256:aa",
		"x/drydock-pause:1":           "127.0.0.1:5000/drydock/x/drydock-pause:1",
		"x/drydock-actor:1@":          "127.0.0.1:5000/drydock/x/drydock-actor@sha256:aa",
		"busybox:1":                   "busybox:1",
		"example.com/drydock-actor:1": "example.com/drydock-actor:1",
		"localhost:1/drydock-actor":   "localhost:1/drydock-actor",
	} {
		if got := r.Rewrite(in); got != want {
			t.Errorf("Rewrite(%q) = %q, want %q", in, got, want)
		}
	}
}

// How repositories are in trouble, and how it ends.
func TestFaults(t *testing.T) {
	r := serve(t)
	status := func(repo string, opts ...remote.Option) int {
		_, err := pull(t, r.Ref(repo+"/drydock-actor:1"), opts...)
		var te *transport.Error
		switch {
		case err == nil:
			return http.StatusOK
		case errors.As(err, &te):
			return te.StatusCode
		}
		return -1
	}
	login := remote.WithAuth(&authn.Basic{Username: actor.PrivateUser, Password: actor.PrivatePassword})
	wrong := remote.WithAuth(&authn.Basic{Username: actor.PrivateUser, Password: "x"})
	for _, tc := range []struct {
		repo string
		opts []remote.Option
		want int
	}{
		{"x", nil, 200}, {"missing", nil, 404}, {"broken", nil, 500}, {"forbidden", nil, 403}, {"cut", nil, -1}, {"corrupt", nil, -1},
		{"private", nil, 401}, {"private", []remote.Option{wrong}, 401}, {"private", []remote.Option{login}, 200}, {"x/broken/y", nil, 500},
	} {
		if got := status(tc.repo, tc.opts...); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.repo, got, tc.want)
		}
	}
	r.SetFault("mine/drydock-actor", Fault{Status: 503, Times: 2})
	for i, want := range []int{503, 503, 200, 200} {
		if got := status("mine"); got != want {
			t.Errorf("pull %d: %d, want %d", i, got, want)
		}
	}
	if n := r.Pulls("mine/drydock-actor"); n < 4 {
		t.Errorf("%d pulls counted of 4", n)
	}
	if n := r.Pulls("other/drydock-actor"); n != 0 {
		t.Errorf("%d pulls counted of none", n)
	}
	r.SetFault("mine/drydock-actor", Fault{Delay: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := status("mine", remote.WithContext(ctx)); got != -1 {
		t.Errorf("a pull that takes an hour: %d", got)
	}
	r.SetFault("mine/drydock-actor", Fault{})
	if got := status("mine"); got != 200 {
		t.Errorf("after all that: %d", got)
	}
}

func TestServeErrors(t *testing.T) {
	script := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		o    Options
		want string
	}{
		{Options{Program: "/does/not/exist"}, "/does/not/exist"},
		{Options{Program: script}, script},
		{Options{Addr: "nonsense", Program: testProgram(t)}, "nonsense"},
	} {
		if r, err := New(t.Context(), tc.o); err == nil {
			r.Close()
			t.Errorf("%+v succeeded", tc.o)
		} else if !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v does not name %s", tc.o, err, tc.want)
		}
	}
	if a := advertised("[::]:5000", "node"); a != "node:5000" {
		t.Errorf("advertised %s", a)
	}
	if a := advertised("[::]:5000", "node:80"); a != "node:80" {
		t.Errorf("advertised %s", a)
	}
}
