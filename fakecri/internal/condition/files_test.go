package condition

import (
	"io/fs"
	"testing"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// TestFileIs: what busybox test says of a file's owner and mode, which is by the bits alone: of
// the owner those of the owner count, even if others may more.
func TestFileIs(t *testing.T) {
	const letters = "rwxOG"
	user := kernel.Cred{UID: 1000, GID: 3000, Groups: []int{2000}}
	for _, tc := range []struct {
		cred     kernel.Cred
		uid, gid int
		mode     fs.FileMode
		want     string // of the letters
	}{
		{user, 1000, 0, 0o700, "rwxO"},
		{user, 1000, 0, 0o500, "rxO"},
		{user, 1000, 3000, 0o077, "OG"},
		{user, 0, 3000, 0o060, "rwG"},
		{user, 0, 2000, 0o010, "x"},
		{user, 0, 2000, 0o706, ""},
		{user, 0, 0, 0o704, "r"},
		{user, 0, 0, 0o773, "wx"},
		{kernel.Cred{}, 1000, 1000, 0, "rw"},
		{kernel.Cred{}, 0, 0, 0o010, "rwxOG"},
		{kernel.Cred{GID: 5}, 0, 0, 0o001, "rwxO"},
	} {
		files := memfs.New(memfs.Options{})
		for _, err := range []error{files.WriteFile("/f", nil, 0o644), files.Chown("/f", tc.uid, tc.gid), files.Chmod("/f", tc.mode)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		fi, err := files.Stat("/f")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, op := range []byte(letters) {
			if fileIs(op, fi, &kernel.Process{Cred: tc.cred}) {
				got += string(op)
			}
		}
		if got != tc.want {
			t.Errorf("%+v of a file of %d:%d with %o: %q, want %q", tc.cred, tc.uid, tc.gid, tc.mode, got, tc.want)
		}
	}
}
