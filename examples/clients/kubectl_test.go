package clients

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/drydock-sim/drydock/up"
)

// exit is how kubectl ends a command that fails.
type exit struct {
	text string
	code int
}

// kubectl runs a command of kubectl and returns what it prints.
type kubectl struct {
	t      *testing.T
	config string // its file
}

func newKubectl(t *testing.T) *kubectl {
	file := filepath.Join(t.TempDir(), "config")
	if err := start(t).WriteKubeconfig(file, up.DefaultContext); err != nil {
		t.Fatal(err)
	}
	return &kubectl{t, file}
}

// try runs a command, whose code is not 0 where kubectl says that it failed.
func (k *kubectl) try(args ...string) (out string, code int) {
	k.t.Helper()
	var stdout, stderr bytes.Buffer
	flags := genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag()
	flags.KubeConfig = &k.config
	cache := k.t.TempDir()
	flags.CacheDir = &cache
	c := cmd.NewKubectlCommand(cmd.KubectlOptions{
		ConfigFlags: flags, Arguments: append([]string{"kubectl"}, args...),
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr},
	})
	c.SetArgs(args)
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	c.SilenceUsage = true
	cmdutil.BehaviorOnFatal(func(text string, code int) { panic(exit{text, code}) })
	func() {
		defer func() {
			if e, ok := recover().(exit); ok {
				stderr.WriteString(e.text)
				code = e.code
			}
		}()
		if err := c.Execute(); err != nil {
			fmt.Fprintln(&stderr, err)
			code = 1
		}
	}()
	return stdout.String() + stderr.String(), code
}

// run runs a command, written in words, that must succeed and print these texts.
func (k *kubectl) run(line string, want ...string) string {
	k.t.Helper()
	out, code := k.try(strings.Fields(line)...)
	if code != 0 {
		k.t.Fatalf("kubectl %s: exit %d\n%s", line, code, out)
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			k.t.Errorf("kubectl %s: no %q in\n%s", line, w, out)
		}
	}
	return out
}

func TestKubectl(t *testing.T) {
	k := newKubectl(t)
	raw, err := os.ReadFile("testdata/web.yaml")
	if err != nil {
		t.Fatal(err)
	}
	k.run("apply -f testdata/web.yaml", "deployment.apps/web created", "service/web created")
	k.run("rollout status deployment/web --timeout 60s", "successfully rolled out")
	k.run("get deployments", "NAME", "READY", "web", "2/2")
	k.run("get pods -l app=web -o wide", "Running", "NODE")
	k.run("apply -f testdata/web.yaml", "deployment.apps/web unchanged", "service/web unchanged")

	changed := filepath.Join(t.TempDir(), "web.yaml")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(raw), "replicas: 2", "replicas: 3", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := k.try("diff", "-f", changed); code != 1 || !strings.Contains(out, "+  replicas: 3") {
		t.Errorf("kubectl diff: exit %d\n%s", code, out)
	}
	k.run("scale deployment/web --replicas 3", "deployment.apps/web scaled")
	k.run("wait deployment/web --for=jsonpath={.status.readyReplicas}=3 --timeout 60s", "condition met")
	k.run("set image deployment/web main=web:2", "image updated")
	k.run("rollout status deployment/web --timeout 60s", "successfully rolled out")
	k.run("rollout history deployment/web", "REVISION", "2")
	k.run("rollout undo deployment/web", "rolled back")
	k.run("describe deployment web", "RollingUpdate", "NewReplicaSet", "ScalingReplicaSet")
	k.run("describe service web", "Endpoints:")
	k.run("explain deployment.spec.replicas", "KIND:", "Deployment", "FIELD: replicas")
	k.run("create serviceaccount robot", "serviceaccount/robot created")
	if token := k.run("create token robot"); strings.Count(token, ".") != 2 {
		t.Errorf("kubectl create token: %q is no JWT", token)
	}
	k.run("api-resources", "deployments", "apps/v1", "endpointslices")
	k.run("get nodes", "Ready")
	k.run("delete -f testdata/web.yaml --wait --timeout 60s", `deployment.apps "web" deleted`)
	if out, code := k.try("get", "deployment", "web"); code != 1 || !strings.Contains(out, `deployments.apps "web" not found`) {
		t.Errorf("kubectl get of what is deleted: exit %d\n%s", code, out)
	}
}

// TestKubectlGetWatch sees a pod come up line by line.
func TestKubectlGetWatch(t *testing.T) {
	k := newKubectl(t)
	go func() {
		time.Sleep(500 * time.Millisecond)
		k.try("run", "one", "--image", "web:1")
	}()
	out := k.run("get pods -w --request-timeout 8s")
	for _, want := range []string{"Pending", "ContainerCreating", "Running"} {
		if !strings.Contains(out, want) {
			t.Errorf("kubectl get -w: no %q in\n%s", want, out)
		}
	}
}
