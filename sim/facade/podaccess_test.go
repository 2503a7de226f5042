package facade

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
)

func TestBeforeNode(t *testing.T) {
	one := []v1.Container{{Name: "a"}}
	two := append(one, v1.Container{Name: "b"})
	for _, tt := range []struct {
		sub, query string
		containers []v1.Container
		node       string
		done       bool
		want       string // the error; "" for none
	}{
		{"log", "", one, "", true, ""},
		{"log", "", one, "n", false, ""},
		{"log", "", two, "", false, "a container name must be specified for pod p, choose one of: [i a b]"},
		{"log", "container=b", two, "", true, ""},
		{"log", "container=i", two, "", true, ""},
		{"log", "container=z", one, "n", false, "container z is not valid for pod p"},
		{"exec", "container=z", one, "", false, "container z is not valid for pod p"},
		{"exec", "command=ls", one, "", false, "pod p does not have a host assigned"},
		{"attach", "", two, "n", false, "a container name must be specified for pod p, choose one of: [i a b]"},
		{"attach", "", one, "n", false, ""},
		{"portforward", "", two, "", false, "pod p does not have a host assigned"},
		{"proxy", "", one, "", false, ""},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{NodeName: tt.node, InitContainers: []v1.Container{{Name: "i"}}, Containers: tt.containers}}
		pod.Name = "p"
		done, err := beforeNode(pod, tt.sub, httptest.NewRequest(http.MethodGet, "/?"+tt.query, nil))
		text := ""
		if err != nil {
			text = err.Error()
		}
		if done != tt.done || text != tt.want {
			t.Errorf("%s?%s of %d containers on node %q: %v %q, want %v %q", tt.sub, tt.query, len(tt.containers), tt.node, done, text, tt.done, tt.want)
		}
	}
}

func TestLogOptions(t *testing.T) {
	info := &request.RequestInfo{Resource: "pods", Subresource: "log", Name: "p"}
	for query, want := range map[string]string{
		"tailLines=0&limitBytes=1&sinceSeconds=1": "",
		"tailLines=-1":                    "tailLines: Invalid value: -1: must be greater than or equal to 0",
		"limitBytes=0":                    "limitBytes: Invalid value: 0: must be greater than 0",
		"sinceSeconds=0":                  "sinceSeconds: Invalid value: 0: must be greater than 0",
		"sinceSeconds=0&sinceTime=2026":   "at most one of",
		"sinceTime=2026-01-01T00:00:00Z":  "",
		"tailLines=x&follow=true&since=1": "",
	} {
		err := optionErrors(info, httptest.NewRequest(http.MethodGet, "/?"+query, nil))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
}
