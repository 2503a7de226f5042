package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/drydock-sim/drydock/ground/loop"
)

const (
	// fetchTimeout bounds one request for manifests.
	fetchTimeout = 10 * time.Second
	// loudFailures is how many failures in a row are logged.
	loudFailures = 4
)

// Fetcher gets manifests over HTTP. In a test it is a function, on a machine
// net/http; Fetch waits in its task.
type Fetcher interface {
	// Fetch makes a GET request with a header and returns its answer; the body
	// may be cut after limit bytes.
	Fetch(ctx context.Context, url string, header map[string][]string, limit int64) (*Response, error)
}

// Response is what a server answered.
type Response struct {
	Code int
	// Status is the code and its text, such as "404 Not Found".
	Status string
	Body   []byte
}

// HTTPOptions configure a URL source.
type HTTPOptions struct {
	Group   *loop.Group
	Fetcher Fetcher
	// URL has a pod or a list of pods (staticPodURL); Header goes with each
	// request (staticPodURLHeader).
	URL    string
	Header map[string][]string
	// Period is the time between requests (httpCheckFrequency).
	Period time.Duration
	// Pods makes pods of manifests.
	Pods StaticPods
	// Source is what is fed.
	Source *Source
	// Log takes log lines; nil means none.
	Log func(format string, args ...any)
}

// httpSource reads static pods from a URL (pkg/kubelet/config/http.go), at once
// and every period. What can't be had or read leaves the pods as they were.
type httpSource struct {
	HTTPOptions
	data     []byte // the last body that was looked at
	failures int    // in a row
}

// StartHTTP feeds a source from a URL until the group dies.
func StartHTTP(opts HTTPOptions) {
	s := &httpSource{HTTPOptions: opts}
	s.Group.Until("config/http", s.Period, 0, s.run)
}

// log makes a log line, if anybody takes them.
func (s *httpSource) log(format string, args ...any) {
	if s.Log != nil {
		s.Log(format, args...)
	}
}

// run is one look at the URL. Failures are logged until they are known, and the
// first success after them.
func (s *httpSource) run(ctx context.Context) {
	err := s.read(ctx)
	switch {
	case err == nil && s.failures > 0:
		s.log("Successfully read pods from URL")
		s.failures = 0
	case err == nil:
	case s.failures < loudFailures-1:
		s.log("Failed to read pods from URL err=%v", err)
		s.failures++
	case s.failures == loudFailures-1:
		s.log("Failed to read pods from URL. Further failures are not logged err=%v", err)
		s.failures++
	}
}

// read fetches the manifests and states the pods, unless they are the same as
// last time. Only an empty answer takes pods away: a server in trouble must not
// empty the node.
func (s *httpSource) read(ctx context.Context) error {
	cctx, cancel := loop.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	resp, err := s.Fetcher.Fetch(cctx, s.URL, s.Header, maxManifest+1)
	switch {
	case err != nil:
		return err
	case len(resp.Body) > maxManifest:
		return fmt.Errorf("%s: manifest is larger than %d bytes", s.URL, maxManifest)
	case resp.Code != http.StatusOK:
		return fmt.Errorf("%s: %s", s.URL, resp.Status)
	case len(resp.Body) == 0:
		s.Source.Set(nil) // the source counts as seen
		return fmt.Errorf("zero-length data received from %s", s.URL)
	case bytes.Equal(resp.Body, s.data):
		return nil
	}
	s.data = resp.Body
	pods, err := s.Pods.DecodeURL(resp.Body, s.URL)
	if err != nil {
		return err
	}
	SortPods(pods)
	s.Source.Set(pods)
	return nil
}

// DecodeURL makes pods of what a URL gave, a v1 Pod or a v1 PodList as YAML or
// JSON: defaults, names, UIDs, annotations. One pod of a list that is no good
// spoils the list.
func (d *StaticPods) DecodeURL(data []byte, url string) ([]*v1.Pod, error) {
	list, err := decodePods(data)
	if err != nil {
		return nil, fmt.Errorf("%s: received %d bytes, but couldn't parse as single or multiple pods (%w)", url, len(data), err)
	}
	pods := make([]*v1.Pod, 0, len(list))
	for i := range list {
		if err := d.finish(&list[i], origin{url: url}); err != nil {
			return nil, err
		}
		pods = append(pods, &list[i])
	}
	return pods, nil
}

// decodePods reads a pod or a list of pods.
func decodePods(data []byte) ([]v1.Pod, error) {
	js, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, err
	}
	var meta struct{ APIVersion, Kind string }
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(js, &struct {
		APIVersion *string `json:"apiVersion"`
		Kind       *string `json:"kind"`
	}{&meta.APIVersion, &meta.Kind}); err != nil {
		return nil, err
	}
	switch {
	case meta.APIVersion == "v1" && meta.Kind == "Pod":
		list := make([]v1.Pod, 1)
		return list, sigsjson.UnmarshalCaseSensitivePreserveInts(js, &list[0])
	case meta.APIVersion == "v1" && meta.Kind == "PodList":
		var list v1.PodList
		err := sigsjson.UnmarshalCaseSensitivePreserveInts(js, &list)
		return list.Items, err
	case meta.Kind == "":
		return nil, errors.New("it has no kind")
	}
	return nil, fmt.Errorf("it is %q of %q, neither a v1 Pod nor a v1 PodList", meta.Kind, meta.APIVersion)
}
