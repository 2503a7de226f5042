package up

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drydock-sim/drydock/sim/facade"
)

// Status is where a cluster stands.
type Status struct {
	// Now is the cluster's time, Speed how many times as fast as the wall clock it runs
	// unless it is Paused.
	Now    time.Time `json:"now"`
	Speed  float64   `json:"speed"`
	Paused bool      `json:"paused"`
	// Lost is how much of the wall clock's time the machine was too slow for.
	Lost time.Duration `json:"lost"`
	// Nodes are there, of which so many are Ready; Pods counts by phase.
	Nodes int                 `json:"nodes"`
	Ready int                 `json:"ready"`
	Pods  map[v1.PodPhase]int `json:"pods"`
}

// Status returns where the cluster stands.
func (c *Cluster) Status() (s Status, err error) {
	pace := c.pacer.Pace()
	s = Status{Now: pace.Now, Speed: pace.Speed, Paused: pace.Paused, Lost: pace.Lost}
	err = c.pacer.Between(func() { s.Nodes, s.Ready, s.Pods = c.session.Counts() })
	return s, err
}

// Do does what a scenario's timeline can do, now: an action as it is written there but
// for its time, such as
//
//	{fault: {node: node-0, partition: {for: 30s}}}
//
// It can name no files.
func (c *Cluster) Do(action string) error {
	a, err := c.session.Parse([]byte(action))
	if err != nil {
		return err
	}
	if perr := c.pacer.Between(func() { err = c.session.Act(a) }); perr != nil {
		return perr
	}
	return err
}

// Compact has the API forget old versions of its objects as a compaction of etcd does:
// the recent past that is cached for watches stays.
func (c *Cluster) Compact() error {
	return c.pacer.On(c.session.Cluster().API().Loop(), c.facade.Compact)
}

// Forget has the API forget all versions but the present ones, as after a compaction and
// a restart: clients that go on from an older one are told to begin anew.
func (c *Cluster) Forget() error {
	return c.pacer.On(c.session.Cluster().API().Loop(), c.facade.Forget)
}

// maxControlBytes bounds the body of a request for control.
const maxControlBytes = 1 << 20

// control is what administrators can do to the cluster from outside. Each request is
// answered with the cluster's status.
func (c *Cluster) control() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, do func(req *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) {
			req.Body = http.MaxBytesReader(w, req.Body, maxControlBytes)
			err := do(req)
			status, serr := c.Status()
			large, told := (*http.MaxBytesError)(nil), apierrors.APIStatus(nil)
			switch {
			case errors.As(err, &large):
				http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			case errors.As(err, &told) && told.Status().Code == http.StatusRequestTimeout:
				http.Error(w, err.Error(), http.StatusRequestTimeout)
			case err != nil:
				http.Error(w, err.Error(), http.StatusBadRequest)
			case serr != nil:
				http.Error(w, serr.Error(), http.StatusServiceUnavailable)
			default:
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(status) // or the client is gone
			}
		})
	}
	handle("GET "+facade.ControlPath+"status", func(*http.Request) error { return nil })
	handle("POST "+facade.ControlPath+"pause", func(*http.Request) error { c.Pause(); return nil })
	handle("POST "+facade.ControlPath+"resume", func(*http.Request) error { c.Resume(); return nil })
	handle("POST "+facade.ControlPath+"step", func(req *http.Request) error {
		d, err := time.ParseDuration(req.URL.Query().Get("for"))
		if err == nil && d <= 0 {
			err = errors.New("a step takes some time")
		}
		if err != nil {
			return err
		}
		return c.Step(req.Context(), d)
	})
	handle("POST "+facade.ControlPath+"do", func(req *http.Request) error {
		action, err := io.ReadAll(req.Body)
		if err != nil {
			return err
		}
		return c.Do(string(action))
	})
	handle("POST "+facade.ControlPath+"compact", func(*http.Request) error { return c.Compact() })
	handle("POST "+facade.ControlPath+"forget", func(*http.Request) error { return c.Forget() })
	return mux
}
