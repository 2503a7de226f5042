package images

import (
	"cmp"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/actor"
)

// Fault is how the registry treats the pulls of a repository.
type Fault struct {
	// Status, if not 0, is the HTTP status of every answer.
	Status int
	// Delay is how long an answer takes.
	Delay time.Duration
	// User and Password, if any, must be given (Basic).
	User, Password string
	// Times is how many manifests it meets before all is well; 0 means all.
	Times int
	// BlobsOnly spares manifests: a pull begins and then fails.
	BlobsOnly bool
	// Corrupt flips a byte of every blob.
	Corrupt bool
}

// SetFault sets how pulls of a repository ("check-17/drydock-actor") are
// treated from now on; a zero Fault undoes it.
func (r *Registry) SetFault(repository string, f Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults[repository] = f
}

// request is what a request to the registry asks for.
type request struct {
	repository string // below the namespace
	kind       string // "manifests" or "blobs"
	what       string
}

func parseRequest(urlPath string) (request, bool) {
	rest, ok := strings.CutPrefix(urlPath, "/v2/"+namespace+"/")
	if !ok {
		return request{}, false
	}
	for _, kind := range []string{"manifests", "blobs"} {
		if i := strings.LastIndex(rest, "/"+kind+"/"); i > 0 {
			return request{rest[:i], kind, rest[i+len(kind)+2:]}, true
		}
	}
	return request{}, false
}

// serve answers a request.
func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	q, ok := parseRequest(req.URL.Path)
	if !ok || req.Method != http.MethodGet && req.Method != http.MethodHead {
		r.store.ServeHTTP(w, req)
		return
	}
	f := r.meet(q)
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-req.Context().Done():
			return
		}
	}
	if f.User != "" {
		if user, pass, ok := req.BasicAuth(); !ok || user != f.User || pass != f.Password {
			w.Header().Set("WWW-Authenticate", `Basic realm="drydock"`)
			refuse(w, http.StatusUnauthorized)
			return
		}
	}
	r.count(q)
	if f.Status != 0 {
		refuse(w, f.Status)
		return
	}
	if f.Corrupt {
		w = &corrupter{ResponseWriter: w}
	}
	// Aliases are the same repository.
	req = req.Clone(req.Context())
	req.URL.Path = "/v2/" + namespace + "/" + path.Base(q.repository) + "/" + q.kind + "/" + q.what
	r.store.ServeHTTP(w, req)
}

// count counts a request of a tag.
func (r *Registry) count(q request) {
	if q.kind != "manifests" || strings.Contains(q.what, ":") {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pulls[q.repository]++
}

// meet returns the fault that a request meets.
func (r *Registry) meet(q request) Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	manifest := q.kind == "manifests"
	f, ok := r.faults[q.repository]
	if !ok {
		t, _ := actor.TroubleOf(q.repository)
		f = Fault{Status: t.Status, Delay: t.Delay, User: t.User, Password: t.Password, BlobsOnly: t.Blobs || t.Corrupt, Corrupt: t.Corrupt}
		return f.of(manifest)
	}
	g := f.of(manifest)
	if f.Times > 0 && manifest {
		if f.Times--; f.Times == 0 {
			f = Fault{}
		}
		r.faults[q.repository] = f
	}
	return g
}

func (f Fault) of(manifest bool) Fault {
	if manifest && f.BlobsOnly {
		return Fault{User: f.User, Password: f.Password, Delay: f.Delay}
	}
	return f
}

// refuse answers as the distribution specification has errors.
func refuse(w http.ResponseWriter, status int) {
	code := map[int]string{
		http.StatusNotFound: "MANIFEST_UNKNOWN", http.StatusUnauthorized: "UNAUTHORIZED", http.StatusForbidden: "DENIED",
	}[status]
	code = cmp.Or(code, "UNKNOWN")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`+"\n", code, strings.ToLower(http.StatusText(status)))
}

// corrupter flips a bit in the first byte of a body.
type corrupter struct {
	http.ResponseWriter
	done bool
}

func (c *corrupter) Write(b []byte) (int, error) {
	if c.done || len(b) == 0 {
		return c.ResponseWriter.Write(b)
	}
	c.done = true
	d := append([]byte(nil), b...)
	d[len(d)-1] ^= 1
	return c.ResponseWriter.Write(d)
}
