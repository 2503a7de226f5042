package images

import (
	"testing"

	"github.com/distribution/reference"
)

func TestApplyDefaultTag(t *testing.T) {
	for _, tc := range []struct{ in, want, err string }{
		{in: "busybox", want: "busybox:latest"},
		{in: "busybox:1", want: "busybox:1"},
		{in: "localhost:5000/a/b", want: "localhost:5000/a/b:latest"},
		{in: "localhost:5000/a/b:v1.2", want: "localhost:5000/a/b:v1.2"},
		{in: "a@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", want: "a@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{in: "Bad", err: `couldn't parse image name "Bad": invalid reference format: repository name (library/Bad) must be lowercase`},
		{in: "", err: `couldn't parse image name "": invalid reference format`},
	} {
		got, err := ApplyDefaultTag(tc.in)
		if got != tc.want || (err != nil || tc.err != "") && (err == nil || err.Error() != tc.err) {
			t.Errorf("%q: %q, %v", tc.in, got, err)
		}
	}
}

// What the short cut lets through, the parser accepts as tagged.
func FuzzPlainlyTagged(f *testing.F) {
	for _, s := range []string{"a:1", "a/b:1", "a.b:5/c-d:V_1", "a:1/b", "a..b:1", "registry.local/busybox:1.35", "a:b:c", "-a:1", "a_b:5/c:1", "a:-1",
		"0123456789012345678901234567890123456789012345678901234567890123:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !plainlyTagged(s) {
			return
		}
		named, err := reference.ParseNormalizedNamed(s)
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if _, ok := named.(reference.Tagged); !ok {
			t.Fatalf("%q has no tag", s)
		}
	})
}

func TestPlainlyTaggedTakesUsualNames(t *testing.T) {
	for _, s := range []string{"nginx:1.25", "registry.k8s.io/pause:3.10", "127.0.0.1:5999/none:1"} {
		if !plainlyTagged(s) {
			t.Errorf("%q is not taken", s)
		}
	}
}
