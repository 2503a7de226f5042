package up

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// others is somebody's kubeconfig.
const others = `apiVersion: v1
kind: Config
current-context: work
clusters:
- name: work
  cluster: {server: "https://work.example"}
contexts:
- name: work
  context: {cluster: work, user: me}
users:
- name: me
  user: {token: secret}
`

func TestKubeconfig(t *testing.T) {
	c := start(t, Options{})
	drydock := strings.NewReplacer("work", "drydock", "me}", "drydock}", "name: me", "name: drydock").Replace(others)
	for _, tt := range []struct {
		name, old string
		write     func(file, context string) error
		want      string // contexts and the current one; or what the error says
	}{
		{"new", "", c.WriteKubeconfig, "drydock; drydock"},
		{"others", others, c.WriteKubeconfig, `has "work", which is not`},
		{"no kubeconfig", "hello", c.WriteKubeconfig, "kubeconfig"},
		{"merged into nothing", "", c.MergeKubeconfig, "drydock; drydock"},
		{"merged", others, c.MergeKubeconfig, "drydock work; work"},
		{"of the same name", drydock, c.MergeKubeconfig, `has a "drydock" that is not`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config")
			if tt.old != "" {
				if err := os.WriteFile(file, []byte(tt.old), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // the second finds its own
				err := tt.write(file, DefaultContext)
				if err != nil {
					if data, _ := os.ReadFile(file); !strings.Contains(err.Error(), tt.want) || string(data) != tt.old {
						t.Errorf("%v, want %q; the file: %s", err, tt.want, data)
					}
					return
				}
			}
			got, err := clientcmd.LoadFromFile(file)
			if err != nil {
				t.Fatal(err)
			}
			contexts := "drydock"
			if len(got.Contexts) == 2 {
				contexts = "drydock work"
			}
			if s := contexts + "; " + got.CurrentContext; s != tt.want || got.Contexts["drydock"] == nil {
				t.Errorf("contexts %s, want %s", s, tt.want)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v %v", info.Mode(), err)
			}
			if tt.old != "" && got.AuthInfos["me"].Token != "secret" {
				t.Error("another's user is gone")
			}
		})
	}
}

// TestKubeconfigWorks reaches a cluster by its kubeconfig, through a link that stays one.
func TestKubeconfigWorks(t *testing.T) {
	c := start(t, Options{})
	dir := t.TempDir()
	file, link := filepath.Join(dir, "config"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteKubeconfig(link, "mine"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v %v", info, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
