package images

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
)

// TestCatalogue reads every file: each can be decoded, is found by its name, and
// has files that there are.
func TestCatalogue(t *testing.T) {
	c := newCatalogue()
	trees := append(testTrees(), "", treeBusybox, treeAlpine, treeDebian, treePause, treePredefinedGroup, treeDistroless, treeCurl)
	for i, k := range c.all() {
		if name := c.names[i]; c.find("docker.io/any/"+name) != k {
			t.Errorf("%s: not found by its name", name)
		}
		if !slices.Contains(trees, k.Tree) {
			t.Errorf("%s: no files %q", c.names[i], k.Tree)
		}
		if len(k.Entrypoint)+len(k.Cmd) == 0 && !k.Closed {
			t.Errorf("%s: runs nothing", c.names[i])
		}
	}
	if k := c.find("quay.io/suite/hostnet-nginx-amd64"); k == nil || k.Server.Ports[0].Port != 12003 || k.Server.Root == "" {
		t.Errorf("what begins as a known image is %+v", k)
	}
	if k := c.find("docker.io/library/nobody-knows"); k != nil {
		t.Errorf("an image that nobody knows is %+v", k)
	}
}

// TestMissingPages: a server of files has only what its image has, unless somebody
// brings pages or a configuration along.
func TestMissingPages(t *testing.T) {
	s := &server{Programs: []string{"nginx"}, Ports: []port{{Port: 80}}, Page: "welcome", Root: "/srv/html", Config: []string{"/etc/nginx/conf.d"}}
	for _, c := range []struct {
		mount, path string
		want        int
	}{
		{"", "/", 200}, {"", "/index.html", 200}, {"", "/healthz", 404}, {"/data", "/healthz", 404},
		{"/srv/html", "/healthz", 200}, {"/etc/nginx/conf.d/default.conf", "/healthz", 200}, {"/etc/nginx", "/healthz", 200},
	} {
		config := &runtimeapi.ContainerConfig{}
		if c.mount != "" {
			config.Mounts = []*runtimeapi.Mount{{ContainerPath: c.mount}}
		}
		req := httptest.NewRequest(http.MethodGet, c.path, nil)
		if code, _ := s.daemon()(&Start{Config: config, Argv: []string{"nginx"}}).Ports[0].Answer(program.Asked{Server: noFiles{}, Req: req}); code != c.want {
			t.Errorf("%s with %q mounted: %d, want %d", c.path, c.mount, code, c.want)
		}
	}
}

type noFiles struct{ program.Server }

func (noFiles) Files() program.Files { return nil }
