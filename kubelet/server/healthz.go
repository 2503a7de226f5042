package server

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Check is a named check; an error means that the kubelet is not well. It is
// called from any goroutine.
type Check struct {
	Name  string
	Check func() error
}

// Ping passes as long as anybody answers.
func Ping() Check { return Check{"ping", func() error { return nil }} }

// NewHealthz returns the handler of /healthz, which runs the checks of root, and
// of /healthz/<name> for each of those and of more. On its own port upstream has
// ping only; the other checks are there for who asks for them by name, as they
// are on upstream's main port.
func NewHealthz(root, more []Check) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/healthz", rootHandler("healthz", root))
	for _, c := range slices.Concat(root, more) {
		mux.Handle("/healthz/"+c.Name, checkHandler(c))
	}
	return mux
}

// checkHandler runs one check.
func checkHandler(c Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := c.Check(); err != nil {
			http.Error(w, fmt.Sprintf("internal server error: %v", err), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, "ok")
	})
}

// rootHandler runs all checks but those that the query excludes.
func rootHandler(name string, checks []Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		excluded := query["exclude"]
		var unknown, failed []string
		for _, e := range excluded {
			if !slices.ContainsFunc(checks, func(c Check) bool { return c.Name == e }) && !slices.Contains(unknown, strconv.Quote(e)) {
				unknown = append(unknown, strconv.Quote(e))
			}
		}
		var out bytes.Buffer
		for _, c := range checks {
			if slices.Contains(excluded, c.Name) {
				fmt.Fprintf(&out, "[+]%s excluded: ok\n", c.Name)
			} else if err := c.Check(); err != nil {
				// The page is public.
				fmt.Fprintf(&out, "[-]%s failed: reason withheld\n", c.Name)
				failed = append(failed, c.Name)
			} else {
				fmt.Fprintf(&out, "[+]%s ok\n", c.Name)
			}
		}
		if len(unknown) > 0 {
			slices.Sort(unknown)
			fmt.Fprintf(&out, "warn: some health checks cannot be excluded: no matches for %s\n", strings.Join(unknown, ","))
		}
		if len(failed) > 0 {
			http.Error(w, out.String()+name+" check failed", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if _, verbose := query["verbose"]; !verbose {
			fmt.Fprint(w, "ok")
			return
		}
		fmt.Fprintf(&out, "%s check passed\n", name)
		_, _ = out.WriteTo(w)
	})
}
