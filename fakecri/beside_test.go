package fakecri

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/usage"
)

// A program that is stated beside a container's own takes nothing away from that, and what it
// uses counts.
func TestBeside(t *testing.T) {
	podinfo := []string{"./podinfo", "--port=9898", "--port-metrics=9797"}
	ready := []Port{{Port: 8080, HTTP: []HTTPAnswer{{Path: "/ready", Status: 503}}}}
	for _, tc := range []struct {
		name    string
		image   string
		command []string
		known   bool // BesideKnown, not Beside
		ports   []Port
		answers map[string]int // by port and path; 0: connection refused
		log     string
	}{
		{name: "an image's server", image: "stefanprodan/podinfo:6.14.1", command: podinfo,
			answers: map[string]int{":9898/readyz": 200, ":9797/metrics": 200, ":8080/": 0}},
		{name: "and a port of its", image: "stefanprodan/podinfo:6.14.1", command: podinfo,
			ports:   []Port{{Port: 9898, HTTP: []HTTPAnswer{{Path: "/readyz", Status: 503}}}},
			answers: map[string]int{":9898/readyz": 503, ":9797/metrics": 200, ":8080/": 0}},
		{name: "and another port", image: "stefanprodan/podinfo:6.14.1", command: podinfo, ports: ready,
			answers: map[string]int{":9898/readyz": 200, ":8080/ready": 503, ":8081/": 0}},
		{name: "a script that ends with the server", image: "stefanprodan/podinfo:6.14.1", command: []string{"sh", "-c", "echo begins; exec podinfo"}, ports: ready,
			answers: map[string]int{":9898/readyz": 200, ":8080/ready": 503}, log: "begins\n"},
		{name: "a script that serves", image: "busybox:1.36", command: []string{"sh", "-c", "echo begins; echo yes > /tmp/page; httpd -f -p 8081 -h /tmp"}, ports: ready,
			answers: map[string]int{":8081/page": 200, ":8081/none": 404, ":8080/ready": 503, ":8082/": 0}, log: "begins\n"},
		{name: "and nothing but what it uses", image: "busybox:1.36", command: []string{"sh", "-c", "echo yes > /tmp/page; httpd -f -p 8081 -h /tmp"},
			answers: map[string]int{":8081/page": 200, ":8080/": 0}},
		{name: "a known server's usage", image: "stefanprodan/podinfo:6.14.1", command: podinfo, known: true,
			answers: map[string]int{":9898/readyz": 200, ":8080/": 0}},
		{name: "a known command's usage", image: "busybox:1.36", command: []string{"sh", "-c", "echo yes > /tmp/page; httpd -f -p 8081 -h /tmp"}, known: true,
			answers: map[string]int{":8081/page": 200, ":8080/": 0}},
		{name: "the usage of what nobody knows", image: "quay.io/some/thing:1", command: []string{"thing"}, known: true,
			answers: map[string]int{":8080/": 200, ":8081/": 200}},
		{name: "an image that nobody knows", image: "quay.io/some/thing:1",
			answers: map[string]int{":8080/": 200, ":8081/": 200}},
		{name: "and a port", image: "quay.io/some/thing:1", ports: ready,
			answers: map[string]int{":8080/ready": 503, ":8080/": 404, ":8081/": 200}},
		{name: "and one that is not open yet", image: "quay.io/some/thing:1", ports: []Port{{Port: 8080, After: time.Hour}},
			answers: map[string]int{":8080/": 0, ":8081/": 200}},
	} {
		for _, processes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, processes %v", tc.name, processes), func(t *testing.T) {
				opts, warned, logs := Options{}, "", &logLines{}
				if processes {
					opts = socketOptions
				}
				opts.Warn = func(text string) { warned += text + "\n" }
				opts.Logs = logs
				opts.Programs = []Program{{Beside: !tc.known, BesideKnown: tc.known, Behaviour: Behaviour{
					CPU: usage.Constant(5), Memory: usage.Constant(20 << 20), Ports: tc.ports, Logs: []LogLine{{At: 10 * time.Second, Text: "beside"}},
				}}}
				run(t, opts, func(e *env) {
					e.pull(tc.image)
					sb := e.sandbox("web", 0)
					cfg := containerConfig("web", "main", 0)
					cfg.Image, cfg.Command = spec(tc.image), tc.command
					cfg.Annotations = map[string]string{records.AnnotationPorts: `[{"containerPort":8080},{"containerPort":8081}]`}
					id, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
					e.ok(err)
					e.ok(e.c.StartContainer(e.ctx, id))
					e.sleep(time.Minute)
					pod, err := e.c.PodSandboxStatus(e.ctx, sb, false)
					e.ok(err)
					for at, want := range tc.answers {
						if code, body := e.get(id, "http://"+pod.Status.Network.Ip+at); code != want {
							t.Errorf("%s: %d %q, want %d", at, code, body, want)
						}
					}
					stats, err := e.c.ContainerStats(e.ctx, id)
					e.ok(err)
					if got := int64(stats.Memory.WorkingSetBytes.Value); got < 20<<20 || got > 28<<20 {
						t.Errorf("uses %d bytes, want some 20Mi", got)
					}
					if got := stats.Cpu.UsageCoreNanoSeconds.Value; got < uint64(290*time.Millisecond) || got > uint64(400*time.Millisecond) {
						t.Errorf("used the processor for %s, want some 300ms", time.Duration(got))
					}
				})
				var lines []string
				for line := range strings.Lines(logs.text) {
					_, text, _ := strings.Cut(line, "stdout F ")
					lines = append(lines, text)
				}
				if got := strings.Join(lines, ""); got != tc.log+"beside\n" {
					t.Errorf("log %q", got)
				}
				if warned != "" {
					t.Errorf("warnings %q", warned)
				}
			})
		}
	}
}
