package drydocktest

import (
	"crypto/rand"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
)

// TestVerify: runs of one test are the same.
func TestVerify(t *testing.T) {
	Verify(t, 3, Options{Nodes: 1}, func(t *testing.T, c *Cluster) {
		user := c.Client("user", scheme.Scheme)
		for range 3 {
			if err := user.Create(t.Context(), namespace("n-"+strings.ToLower(rand.Text()))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
	})
}

// TestDiffers is a test that is never the same again, for TestVerifyDiffers.
func TestDiffers(t *testing.T) {
	if os.Getenv(troubleVar) == "" && os.Getenv(childVar) == "" {
		t.Skip("fails")
	}
	started := time.Now()
	Verify(t, 2, Options{}, func(t *testing.T, c *Cluster) {
		user := c.Client("user", scheme.Scheme)
		for _, name := range []string{"same", "at-" + strings.ReplaceAll(started.Format("05.000000000"), ".", "-")} {
			if err := user.Create(t.Context(), namespace(name)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestVerifyDiffers: the first request that differs is shown.
func TestVerifyDiffers(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestDiffers$")
	cmd.Env = append(os.Environ(), troubleVar+"=differs")
	out, err := cmd.CombinedOutput()
	if text := string(out); err == nil || !strings.Contains(text, "is not the first one again") || !strings.Contains(text, `"name":"same"`) || !strings.Contains(text, `"name":"at-`) {
		t.Errorf("%v\n%s", err, out)
	}
}
