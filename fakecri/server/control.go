//go:build linux

package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/drydock-sim/drydock/fakecri"
)

// ControlState is what GET /state of the control endpoint returns. It is for tests and for people
// who watch a run; its fields are part of the interface.
type ControlState struct {
	// Daemon is whether the runtime's daemon answers.
	Daemon bool `json:"daemon"`
	// Sandboxes and what else is there.
	Sandboxes         int `json:"sandboxes"`
	ReadySandboxes    int `json:"readySandboxes"`
	Containers        int `json:"containers"`
	RunningContainers int `json:"runningContainers"`
	Images            int `json:"images"`
	// Calls is how many calls have come, Running how many of them are not
	// over, streams included; Panics is how many things went wrong inside.
	Calls   int64 `json:"calls"`
	Running int64 `json:"running"`
	Panics  int64 `json:"panics"`
	// Subscribers is how many streams of events there are.
	Subscribers int `json:"subscribers"`
	// Faults is how many faults are set.
	Faults int     `json:"faults"`
	Speed  float64 `json:"speed"`
	// Time is the runtime's own time, which Speed makes run fast.
	Time time.Time `json:"time"`
}

// State returns what there is. Counters that any goroutine changes are atomic; all else is read
// on the loop in one step.
func (s *Server) State() (ControlState, error) {
	st := ControlState{Calls: s.calls.Load(), Running: s.running.Load(), Panics: s.panics.Load(), Speed: s.opts.Speed}
	err := s.Do(func(rt *fakecri.Runtime) {
		c := rt.State()
		st.Daemon = rt.DaemonUp()
		st.Sandboxes, st.ReadySandboxes = c.Sandboxes, c.ReadySandboxes
		st.Containers, st.RunningContainers = c.Containers, c.RunningContainers
		st.Images, st.Subscribers, st.Faults = c.Images, len(s.events.subs), len(s.faults.set)
		st.Time = s.loop.Now()
	})
	return st, err
}

// ControlFault is a fault as the control endpoint shows it. Durations are as
// time.Duration writes them. What is not set is left out of the JSON.
type ControlFault struct {
	ID        int    `json:"id"`
	Name      string `json:"name,omitempty"`
	Method    string `json:"method,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Container string `json:"container,omitempty"`
	Image     string `json:"image,omitempty"`
	Code      string `json:"code,omitempty"`
	Message   string `json:"message,omitempty"`
	Latency   string `json:"latency,omitempty"`
	Hang      bool   `json:"hang,omitempty"`
	From      string `json:"from,omitempty"`
	For       string `json:"for,omitempty"`
	Nth       int    `json:"nth,omitempty"`
	Count     int    `json:"count,omitempty"`
}

// Faults lists the faults that are set, those included that are over or used
// up, in the order in which they were set.
func (s *Server) Faults() ([]ControlFault, error) {
	out := []ControlFault{}
	err := s.Do(func(*fakecri.Runtime) {
		for _, f := range s.faults.set {
			out = append(out, f.shown())
		}
	})
	return out, err
}

// shown is a fault as the interface shows it. Unknown is what an error without a code is answered
// with.
func (f *setFault) shown() ControlFault {
	r := &f.rule
	out := ControlFault{ID: f.id, Name: r.Name, Method: r.Method, Pod: r.Pod, Container: r.Container, Image: r.Image,
		Hang: r.Hang, From: shown(r.From), For: shown(r.For), Nth: r.Nth, Count: r.Count}
	if r.Error != nil {
		out.Code, out.Message = r.Error.Code, r.Error.Message
		out.Code = cmp.Or(out.Code, "Unknown")
	}
	if out.Latency = shown(r.Latency.Min); r.Latency.Max > r.Latency.Min {
		out.Latency = r.Latency.Min.String() + ".." + r.Latency.Max.String()
	}
	return out
}

// shown is a duration as people write it, "" for none.
func shown(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// SetDaemon starts or stops the runtime's daemon: while it is down calls are
// answered Unavailable, and containers live on. It is containerd's restart: kubelets must get
// over it without losing pods.
func (s *Server) SetDaemon(up bool) error {
	return s.Do(func(rt *fakecri.Runtime) {
		if up {
			rt.StartDaemon()
		} else {
			rt.StopDaemon()
		}
	})
}

// maxBody is the largest request body of the control endpoint, in bytes.
const maxBody = 1 << 20

// Control is the control endpoint:
//
//	GET /state             what there is, as ControlState
//	GET /faults            the faults that are set, as ControlFault
//	POST /faults           sets faults: what parse makes of the body
//	DELETE /faults[?id=N]  clears all, or one
//	POST /daemon           {"up": true} or {"down": true}
//
// Answers are JSON; an error is {"error": "..."} with a status of 400 or above.
//
// It has no authentication: serve it where only the test can reach it. parse turns the body of a
// POST into faults, which lets the caller choose the format.
func (s *Server) Control(parse func(body []byte) ([]fakecri.Fault, error)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) {
		st, err := s.State()
		answer(w, st, err)
	})
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) {
		list, err := s.Faults()
		answer(w, list, err)
	})
	mux.HandleFunc("POST /faults", func(w http.ResponseWriter, r *http.Request) { s.postFaults(w, r, parse) })
	mux.HandleFunc("DELETE /faults", s.deleteFaults)
	mux.HandleFunc("POST /daemon", s.postDaemon)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer(w, nil, &controlError{http.StatusNotFound, fmt.Errorf("there is no %s %s; there are GET /state, GET, POST and DELETE /faults, POST /daemon", r.Method, r.URL.Path)})
	})
	return mux
}

// controlError is an error with an HTTP status. Any other error is 503: the server is stopping.
type controlError struct {
	code int
	err  error
}

func (e *controlError) Error() string { return e.err.Error() }
func (e *controlError) Unwrap() error { return e.err }

// badRequest is an error of the client's.
func badRequest(err error) error { return &controlError{http.StatusBadRequest, err} }

// answer writes v as JSON, or the error with its status.
func answer(w http.ResponseWriter, v any, err error) {
	code := http.StatusOK
	if err != nil {
		code = http.StatusServiceUnavailable
		var ce *controlError
		if errors.As(err, &ce) {
			code = ce.code
		}
		v = map[string]string{"error": oneLine(err.Error())}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

// body reads a request's body up to a bound.
func body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, badRequest(fmt.Errorf("the body: %w", err))
	}
	return b, nil
}

// postFaults adds faults: all of a request, or none. All are validated before the first is set.
func (s *Server) postFaults(w http.ResponseWriter, r *http.Request, parse func([]byte) ([]fakecri.Fault, error)) {
	b, err := body(w, r)
	if err != nil {
		answer(w, nil, err)
		return
	}
	list, err := parse(b)
	if err != nil {
		answer(w, nil, badRequest(err))
		return
	}
	if len(list) == 0 {
		answer(w, nil, badRequest(errors.New("the body has no fault")))
		return
	}
	for i := range list {
		if err := list[i].Validate(); err != nil {
			answer(w, nil, badRequest(fmt.Errorf("faults[%d]: %w", i, err)))
			return
		}
	}
	var out []ControlFault
	err = s.Do(func(rt *fakecri.Runtime) {
		for _, f := range list {
			s.addFault(rt, f)
			// The last of the set is the one just added.
			out = append(out, s.faults.set[len(s.faults.set)-1].shown())
		}
	})
	answer(w, out, err)
}

// deleteFaults removes a fault by its number, or all. Without id it clears all, and having none
// is no error then.
func (s *Server) deleteFaults(w http.ResponseWriter, r *http.Request) {
	id := 0
	if q := r.URL.Query().Get("id"); q != "" {
		var err error
		if id, err = strconv.Atoi(q); err != nil || id < 1 {
			answer(w, nil, badRequest(fmt.Errorf("id: %q is no fault's number", q)))
			return
		}
	}
	n, err := s.RemoveFault(id)
	if err == nil && id != 0 && n == 0 {
		err = &controlError{http.StatusNotFound, fmt.Errorf("there is no fault %d", id)}
	}
	answer(w, map[string]int{"removed": n}, err)
}

// postDaemon stops or starts the runtime's daemon. Exactly one of the two must be true, so a
// misspelled body changes nothing.
func (s *Server) postDaemon(w http.ResponseWriter, r *http.Request) {
	b, err := body(w, r)
	if err != nil {
		answer(w, nil, err)
		return
	}
	var want struct{ Up, Down bool }
	if err := json.Unmarshal(b, &want); err != nil || want.Up == want.Down {
		answer(w, nil, badRequest(errors.New(`want {"up": true} or {"down": true}`)))
		return
	}
	err = s.SetDaemon(want.Up)
	answer(w, map[string]bool{"daemon": want.Up}, err)
}
