package memfs

import "testing"

// What is written to a tree by one of its mounts is seen by the other, and by the next
// after all are gone.
func TestTree(t *testing.T) {
	f, tree := New(Options{}), NewTree(0o750)
	for _, dir := range []string{"/a", "/b"} {
		if err := tree.Mount(f, dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.WriteFile("/a/file", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if data, err := f.ReadFile("/b/file"); err != nil || string(data) != "x" {
		t.Errorf("by the other mount: %q, %v", data, err)
	}
	for _, dir := range []string{"/a", "/b"} {
		if err := f.Unmount(dir); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Stat("/a/file"); err == nil {
		t.Error("the file is seen where the tree is no longer mounted")
	}
	other := New(Options{})
	if err := tree.Mount(other, "/c"); err != nil {
		t.Fatal(err)
	}
	if data, err := other.ReadFile("/c/file"); err != nil || string(data) != "x" {
		t.Errorf("in another file system: %q, %v", data, err)
	}
	if info, err := other.Stat("/c"); err != nil || info.Mode().Perm() != 0o750 || info.Name() != "c" {
		t.Errorf("mounted: %v, %v", info, err)
	}
}
