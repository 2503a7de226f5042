package paths

import "testing"

func TestAround(t *testing.T) {
	for _, c := range [][3]string{
		{"", "", ""}, {"", "/a", "/a"}, {"/a", "", "/a"}, {"/a", "/a", "/a"}, {"/a/b", "/a/c", "/a"}, {"/a/b", "/a/bc", "/a"},
		{"/a", "/a/b/c", "/a"}, {"/a/b/c", "/a", "/a"}, {"/a", "/b", "/"}, {"/", "/b", "/"},
	} {
		if got := Around(c[0], c[1]); got != c[2] {
			t.Errorf("Around(%q, %q) = %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

func TestRelated(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"/a", "/a", true}, {"/a", "/a/b", true}, {"/a/b", "/a", true}, {"/a", "/ab", false}, {"/", "/a", true}, {"/a/b", "/a/c", false}} {
		if got := Related(c.a, c.b); got != c.want {
			t.Errorf("Related(%q, %q) = %v", c.a, c.b, got)
		}
	}
}
