package checkpointmanager

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/drydock-sim/drydock/kubelet/internal/checkpointmanager/checkpointtest"
	"github.com/drydock-sim/drydock/kubelet/internal/checkpointmanager/checksum"
)

type files = checkpointtest.Files

type checkpoint struct {
	Entries  map[string]string `json:"entries"`
	Checksum checksum.Checksum `json:"checksum"`
}

func TestReadWrite(t *testing.T) {
	f := files{}
	c := checkpoint{Entries: map[string]string{"a": "1"}}
	if err := Write(f, "/k/state", &c, &c.Checksum); err != nil {
		t.Fatal(err)
	}
	written := string(f["/k/state"])
	for _, tc := range []struct {
		name, file string
		want       error
	}{
		{"as it was written", written, nil},
		{"another value", `{"entries":{"a":"2"}` + written[len(`{"entries":{"a":"1"}`):], checksum.ErrCorrupt},
		{"no file", "", fs.ErrNotExist},
	} {
		f := files{"/k/state": []byte(tc.file)}
		if tc.file == "" {
			delete(f, "/k/state")
		}
		var got checkpoint
		if err := Read(f, "/k/state", &got, &got.Checksum); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		} else if err == nil && (got.Entries["a"] != "1" || got.Checksum != 0) {
			t.Errorf("%s: got %+v", tc.name, got)
		}
	}
	var got checkpoint
	if err := Read(files{"/k/state": []byte("{")}, "/k/state", &got, &got.Checksum); err == nil {
		t.Error("half a document is read")
	}
}
