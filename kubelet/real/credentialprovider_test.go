//go:build linux

package real

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/fakecri/actor"
	"github.com/drydock-sim/drydock/fakecri/fakecritest"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// login is a plugin that notes what it is asked, and answers with the user and password
// that it is configured with.
const login = `#!/bin/sh
cat >> "$ASKED"
echo "$1 $ALSO_SET" >> "$ASKED"
echo '{"kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "cacheKeyType": "Registry",
  "auth": {"registry.example": {"username": "'"$1"'", "password": "'"$2"'"}}}'
`

const providers = `apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: login
  matchImages: ["*.example/private"]
  defaultCacheDuration: 10m
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  args: [` + actor.PrivateUser + `, ` + actor.PrivatePassword + `]
  env: [{name: ASKED, value: FILE}, {name: ALSO_SET, value: "over it"}]
`

const privatePod = `apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: "registry.example/private/drydock-actor:1", imagePullPolicy: Always}
  - {name: other, image: "registry.example/private/drydock-actor:2", imagePullPolicy: Always}
`

// TestCredentialProvider has a plugin's credentials let a pod's images be pulled, which
// the registry refuses without. The second image is had from what the first one brought.
func TestCredentialProvider(t *testing.T) {
	current := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, current) })
	srv := fakecritest.NewServer(t)
	c, dir := config(t), t.TempDir()
	c.ContainerRuntimeEndpoint = srv.Endpoint()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
		return name
	}
	asked := filepath.Join(dir, "asked")
	t.Setenv("ALSO_SET", "by the kubelet")
	if err := os.WriteFile(filepath.Join(c.StaticPodPath, "app.yaml"), []byte(privatePod), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Config: c, NodeName: "node", RootDir: t.TempDir(), ContainerLogsDir: t.TempDir(), Defaulter: apiserver.SetPodDefaults,
		ImageCredentialProviderConfig: write("providers.yaml", strings.ReplaceAll(providers, "FILE", asked), 0o600),
		ImageCredentialProviderBinDir: filepath.Join(dir, "bin"),
	}
	t.Cleanup(func() { _ = unix.Unmount(o.RootDir, 0) })
	if err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "failed to register CRI auth plugins: plugin binary directory "+dir+"/bin did not exist") {
		t.Errorf("without the directory: %v", err)
	}
	write("bin/login", login, 0o700)
	r := start(t, o)
	r.container()
	both := func() bool {
		list, err := r.h.Pods()
		return err == nil && len(list) == 1 && len(list[0].Status.ContainerStatuses) == 2 &&
			!slices.ContainsFunc(list[0].Status.ContainerStatuses, func(s v1.ContainerStatus) bool { return s.State.Running == nil })
	}
	for end := time.Now().Add(20 * time.Second); !both() && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	if !both() {
		t.Error("the second container does not run")
	}
	r.end()
	got, err := os.ReadFile(asked)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"registry.example/private/drydock-actor"}` + "\n" +
		actor.PrivateUser + " over it\n"
	if string(got) != want {
		t.Errorf("the plugin was asked\n%s", got)
	}
}
