package fakecri

import (
	"testing"

	"github.com/drydock-sim/drydock/fakecri/internal/process"
)

// Whatever a profile's file holds, reading it ends, and what can be read
// answers for every system call.
func FuzzSeccompProfile(f *testing.F) {
	for _, s := range []string{
		`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["chmod"],"action":"SCMP_ACT_ERRNO"}]}`,
		`{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"name":"chmod","action":"SCMP_ACT_ALLOW","args":[{"index":0}]}]}`,
		`{}`, `[]`, `null`, `{"syscalls":null}`, `{"syscalls":[{"names":[""]}]}`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := process.SeccompFilter(data)
		if (p == nil) != (err != nil) {
			t.Fatalf("%v, %v", p, err)
		}
	})
}

func TestSeccompFilter(t *testing.T) {
	for _, tc := range []struct {
		profile string
		rest    bool
		names   int
	}{
		{`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["chmod"],"action":"SCMP_ACT_ERRNO"},{"names":["chown"],"action":"SCMP_ACT_ALLOW"}]}`, false, 1},
		{`{"defaultAction":"SCMP_ACT_LOG"}`, false, 0},
		{`{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["a","b"],"action":"SCMP_ACT_ALLOW"},{"name":"c","action":"SCMP_ACT_ALLOW"}]}`, true, 3},
		{`{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["a"],"action":"SCMP_ACT_ALLOW","args":[{"index":0}]}]}`, true, 0},
	} {
		f, err := process.SeccompFilter([]byte(tc.profile))
		if err != nil {
			t.Fatal(err)
		}
		if f.DenyRest != tc.rest || len(f.Except) != tc.names {
			t.Errorf("%s: %+v", tc.profile, f)
		}
	}
}
