package state

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"k8s.io/utils/cpuset"

	"github.com/drydock-sim/drydock/kubelet/internal/checkpointmanager/checkpointtest"
)

type files = checkpointtest.Files

// What a real kubelet writes for policy none, to the byte.
func TestCheckpointOfPolicyNone(t *testing.T) {
	f := files{}
	if _, err := New(f, "/k", "none"); err != nil {
		t.Fatal(err)
	}
	const want = `{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`
	if got := string(f["/k/"+File]); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestRestore(t *testing.T) {
	f := files{}
	s, err := New(f, "/k", "static")
	if err != nil {
		t.Fatal(err)
	}
	s.SetDefault(cpuset.New(0, 2, 3))
	s.Set("uid", "c", cpuset.New(1))
	if err := s.Store(); err != nil {
		t.Fatal(err)
	}
	r, err := New(f, "/k", "static")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := r.Get("uid", "c"); got.String() != "1" || r.Default().String() != "0,2-3" || r.Len() != 1 {
		t.Errorf("restored %s, default %s", got, r.Default())
	}
	unsigned := files{"/k/" + File: []byte(`{"policyName":"static","defaultCpuSet":"0,2-3","entries":{"uid":{"c":"1"}}}`)}
	if r, err = New(unsigned, "/k", "static"); err != nil || r.Len() != 1 {
		t.Errorf("without a checksum: %v, %v", r, err)
	}
	const tail = `, please drain this node and delete the CPU manager checkpoint file "/k/cpu_manager_state" before restarting Kubelet`
	for _, tc := range []struct{ policy, from, to, want string }{
		{"none", "", "", `configured policy "none" differs from state checkpoint policy "static"`},
		{"static", `"1"`, `"2"`, "checkpoint is corrupted"},
		{"static", `{`, `[`, "invalid character"},
	} {
		changed := files{"/k/" + File: []byte(strings.Replace(string(f["/k/"+File]), tc.from, tc.to, 1))}
		_, err := New(changed, "/k", tc.policy)
		if err == nil || !strings.HasPrefix(err.Error(), "could not restore state from checkpoint: "+tc.want) || !strings.HasSuffix(err.Error(), tail) {
			t.Errorf("%+v: got %v", tc, err)
		}
	}
	if _, err := New(broken{}, "/k", "none"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
}

type broken struct{ files }

func (broken) ReadFile(string) ([]byte, error) { return nil, fs.ErrPermission }
