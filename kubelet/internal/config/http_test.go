package config

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

type fetch func(ctx context.Context, url string, header map[string][]string, limit int64) (*Response, error)

func (f fetch) Fetch(ctx context.Context, url string, header map[string][]string, limit int64) (*Response, error) {
	return f(ctx, url, header, limit)
}

const (
	onePod  = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}`
	twoPods = `{apiVersion: v1, kind: PodList, items: [{metadata: {name: b, uid: "2"}}, {metadata: {name: a, uid: "1"}}]}`
)

func TestHTTPSource(t *testing.T) {
	l := loop.New(loop.Options{})
	defer l.Close()
	c := NewPodConfig(Options{Loop: l, Recorder: &events{}})
	var lines []string
	answer, asked := func(context.Context) (*Response, error) { return nil, errors.New("refused") }, 0
	StartHTTP(HTTPOptions{
		Group: l.NewGroup("kubelet"), URL: "http://x/pods", Header: map[string][]string{"A": {"b", "c"}}, Period: 20 * time.Second,
		Fetcher: fetch(func(ctx context.Context, url string, header map[string][]string, limit int64) (*Response, error) {
			asked++
			if url != "http://x/pods" || !reflect.DeepEqual(header, map[string][]string{"A": {"b", "c"}}) || limit <= 10<<20 {
				t.Errorf("asked for %s with %v, %d", url, header, limit)
			}
			return answer(ctx)
		}),
		Pods: StaticPods{NodeName: "node"}, Source: c.Source("http"),
		Log: func(f string, a ...any) { lines = append(lines, fmt.Sprintf(f, a...)) },
	})
	says := func(code int, body string) func(context.Context) (*Response, error) {
		return func(context.Context) (*Response, error) {
			return &Response{Code: code, Status: fmt.Sprintf("%d Text", code), Body: []byte(body)}, nil
		}
	}
	now := loop.Epoch()
	for _, tc := range []struct {
		name   string
		answer func(context.Context) (*Response, error)
		want   []string // prefixes of messages, UIDs left out
		line   string
	}{
		{"refused", answer, nil, "Failed to read pods from URL err=refused"},
		{"not found", says(404, onePod), nil, "http://x/pods: 404 Text"},
		{"nothing", says(200, ""), []string{"ADD"}, "zero-length data received from http://x/pods"},
		{"no YAML", says(200, "a: ["), nil, "couldn't parse as single or multiple pods"},
		{"another kind, not logged any more", says(200, `{apiVersion: v1, kind: Node}`), nil, ""},
		{"a pod", says(200, onePod), []string{"ADD a-node/"}, "Successfully read pods from URL"},
		{"the same", says(200, onePod), nil, ""},
		{"a list", says(200, twoPods), []string{"REMOVE a-node/", "ADD a-node/1 b-node/2"}, ""},
		{"one of a list is no good", says(200, strings.Replace(twoPods, "name: b", "x: y", 1)), nil, "name is needed for the pod"},
		{"much", says(200, strings.Repeat(" ", 10<<20+1)), nil, "manifest is larger than 10485760 bytes"},
		{"slow", func(ctx context.Context) (*Response, error) {
			err := l.Sleep(ctx, time.Minute)
			return nil, err
		}, nil, "deadline exceeded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			answer, lines, asked = tc.answer, nil, 0
			now = now.Add(20 * time.Second)
			if err := l.RunUntil(now.Add(-time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			got := drain(c)
			ok := len(got) == len(tc.want)
			for i := range tc.want {
				ok = ok && strings.HasPrefix(got[i], tc.want[i])
			}
			if !ok {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if all := strings.Join(lines, "\n"); !strings.Contains(all, tc.line) || tc.line == "" && all != "" {
				t.Errorf("log %q, want %q", all, tc.line)
			}
			if asked != 1 {
				t.Errorf("%d requests in a period", asked)
			}
		})
	}
}

func TestDecodeURL(t *testing.T) {
	d := StaticPods{NodeName: "Node"}
	pods, err := d.DecodeURL([]byte(onePod), "http://x")
	if err != nil || len(pods) != 1 {
		t.Fatal(pods, err)
	}
	p := pods[0]
	if p.Name != "a-node" || p.Namespace != "default" || p.Spec.NodeName != "Node" || p.Status.Phase != v1.PodPending || len(p.UID) != 32 {
		t.Errorf("pod %+v", p)
	}
	if len(p.Spec.Tolerations) != 0 {
		t.Error("only pods from files tolerate NoExecute")
	}
	other, _ := (&StaticPods{NodeName: "other"}).DecodeURL([]byte(onePod), "http://x")
	if other[0].UID != p.UID {
		t.Error("the UID of a pod from a URL is the same on all nodes")
	}
	other, _ = d.DecodeURL([]byte(onePod), "http://y")
	if other[0].UID == p.UID {
		t.Error("the UID depends on the URL")
	}
}

func FuzzDecodeURL(f *testing.F) {
	for _, s := range []string{onePod, twoPods, "a: [", "", "[]", "null", `{"apiVersion": 1, "kind": "Pod"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := StaticPods{NodeName: "n"}
		pods, err := d.DecodeURL(data, "u")
		for _, p := range pods {
			if err == nil && (p.UID == "" || !strings.HasSuffix(p.Name, "-n") || p.Namespace == "") {
				t.Errorf("pod %+v", p.ObjectMeta)
			}
		}
	})
}

func TestFileSourceSkips(t *testing.T) {
	l := loop.New(loop.Options{})
	defer l.Close()
	f := memfs.New(memfs.Options{Loop: l})
	c := NewPodConfig(Options{Loop: l, Recorder: &events{}})
	write := func(name, data string) {
		if err := f.WriteFile(name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"/pods/sub", "/elsewhere"} {
		if err := f.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	pod := func(name string) string { return strings.Replace(onePod, `"a"`, `"`+name+`", "uid": "`+name+`"`, 1) }
	write("/pods/.hidden.yaml", pod("hidden"))
	write("/pods/sub/pod.yaml", pod("below"))
	write("/pods/bad.yaml", "a: [")
	write("/pods/big.yaml", strings.Repeat(" ", 10<<20+1))
	write("/pods/good.json", pod("good"))
	write("/elsewhere/pod.yaml", pod("linked"))
	for link, to := range map[string]string{"/pods/link.yaml": "/elsewhere/pod.yaml", "/pods/broken.yaml": "/nowhere", "/pods/dir.yaml": "/elsewhere"} {
		if err := f.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	StartFile(FileOptions{
		Group: l.NewGroup("kubelet"), FS: f, Path: "/pods/", Period: 20 * time.Second, Pods: StaticPods{NodeName: "n"}, Source: c.Source("file"),
		Log: func(f string, a ...any) { lines = append(lines, fmt.Sprintf(f, a...)) },
	})
	if err := l.RunUntil(loop.Epoch().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if got := drain(c); !reflect.DeepEqual(got, []string{"ADD good-n/good linked-n/linked"}) {
		t.Errorf("got %v", got)
	}
	all := strings.Join(lines, "\n")
	for _, want := range []string{
		"Not recursing into manifest path /pods/sub", "Not recursing into manifest path /pods/dir.yaml",
		"Could not get metadata of manifest /pods/broken.yaml", "Could not process manifest file /pods/bad.yaml",
		"/pods/big.yaml: manifest is larger than 10485760 bytes",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no line %q in\n%s", want, all)
		}
	}
	if strings.Contains(all, "hidden") {
		t.Error("files with a dot are skipped without a word")
	}
}
