package fakecri

import (
	"strings"
	"testing"
)

// A known web server sends what somebody has put into its root, and the page that its image
// has until then. A configuration, which is not read, has every path answered.
func TestWebRoots(t *testing.T) {
	for image, root := range map[string][2]string{
		"nginx:1.27": {"/usr/share/nginx/html", "/etc/nginx/templates"}, "httpd:2.4": {"/usr/local/apache2/htdocs", "/usr/local/apache2/conf"},
	} {
		t.Run(image, func(t *testing.T) {
			run(t, socketOptions, func(e *env) {
				e.pull(image)
				sb := e.sandbox("web", 0)
				cfg := containerConfig("web", "main", 0)
				cfg.Image = spec(image)
				id, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
				e.ok(err)
				e.ok(e.c.StartContainer(e.ctx, id))
				st, err := e.c.PodSandboxStatus(e.ctx, sb, false)
				e.ok(err)
				for _, step := range []struct {
					script, path string
					code         int
					body         string
				}{
					{"true", "/", 200, "<h1>"},
					{"true", "/anything", 404, "Not Found"},
					{"mkdir -p $ROOT/sub", "/", 403, "Forbidden"},
					{"echo hello > $ROOT/index.html; echo x > $ROOT/sub/a.txt", "/", 200, "hello\n"},
					{"true", "/sub/a.txt?v=1", 200, "x\n"},
					{"true", "/sub/../../../../../../etc/passwd", 404, "Not Found"},
					{"true", "/sub/", 403, "Forbidden"},
					{"true", "/missing", 404, "Not Found"},
					{"mkdir -p $CONFIG", "/missing", 200, "<h1>"},
					{"true", "/", 200, "hello\n"},
				} {
					script := strings.NewReplacer("$ROOT", root[0], "$CONFIG", root[1]).Replace(step.script)
					_, _, err := e.c.ExecSync(e.ctx, id, []string{"sh", "-c", script}, 0)
					e.ok(err)
					if code, body := e.get(id, "http://"+st.Status.Network.Ip+step.path); code != step.code || !strings.Contains(body, step.body) {
						t.Errorf("after %q: %s: %d %q, want %d %q", script, step.path, code, body, step.code, step.body)
					}
				}
			})
		})
	}
}
