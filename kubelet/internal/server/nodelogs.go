package server

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of a node log query.
const (
	mostServices      = 4
	longestService    = 256
	mostTailLines     = 100000
	nodeLogQueryLimit = 30 * time.Second
	// journalTime is how journalctl is told a time.
	journalTime = "2006-1-2 15:4:5"
)

// nodeLogs serves /logs/: the files of a directory, and with enableSystemLogQuery what a query asks
// for, of the journal or of the services' files. Upstream: pkg/kubelet/kubelet_server_journal.go,
// KEP-2258.
type nodeLogs struct {
	dir string
	// journalctl runs that program; its output goes to w.
	journalctl func(ctx context.Context, w io.Writer, args ...string) error
	files      http.Handler
	unsafe     *regexp.Regexp
}

// newNodeLogs serves a directory, with queries or without.
func newNodeLogs(dir string, queries bool) http.Handler {
	files := http.FileServer(http.Dir(dir))
	if !queries {
		return http.StripPrefix("/logs/", files)
	}
	return http.StripPrefix("/logs/", &nodeLogs{dir: dir, journalctl: journalctl, files: files, unsafe: regexp.MustCompile(`[^a-zA-Z\-_.:0-9@]`)})
}

func journalctl(ctx context.Context, w io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "journalctl", args...)
	cmd.Stdout, cmd.Stderr = w, w
	return cmd.Run()
}

// nodeLogQuery is what a request asks for.
type nodeLogQuery struct {
	services, files []string
	lineChoice
}

// lineChoice chooses among a service's lines; nil and "": all.
type lineChoice struct {
	since, until    *time.Time
	tailLines, boot *int
	pattern         string
}

// ServeHTTP implements http.Handler.
func (n *nodeLogs) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	q, errs := parseNodeLogQuery(req.URL.Query())
	if len(errs) > 0 {
		http.Error(w, errs.ToAggregate().Error(), http.StatusBadRequest)
		return
	}
	if q == nil {
		n.files.ServeHTTP(w, req)
		return
	}
	if req.URL.Path != "/" && req.URL.Path != "" {
		http.Error(w, "path not allowed in query mode", http.StatusNotAcceptable)
		return
	}
	if errs := n.validate(q); len(errs) > 0 {
		http.Error(w, errs.ToAggregate().Error(), http.StatusNotAcceptable)
		return
	}
	if len(q.files) > 0 {
		file := req.Clone(req.Context())
		file.URL.Path = filepath.ToSlash(q.files[0])
		n.files.ServeHTTP(w, file)
		return
	}
	var out io.Writer = w
	w.Header().Set("Content-Type", "text/plain;charset=UTF-8")
	if req.Header.Get("Accept-Encoding") == "gzip" {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer func() { _ = z.Close() }()
		out = z
	}
	ctx, cancel := context.WithTimeout(req.Context(), nodeLogQueryLimit)
	defer cancel()
	n.write(ctx, out, q)
}

// parseNodeLogQuery returns nil for a request without a query, which is for a file.
func parseNodeLogQuery(values url.Values) (*nodeLogQuery, field.ErrorList) {
	q := &nodeLogQuery{}
	var errs field.ErrorList
	queries, asked := values["query"]
	for _, s := range queries {
		if strings.ContainsAny(s, `/\`) {
			q.files = append(q.files, s)
		} else if strings.TrimSpace(s) != "" {
			q.services = append(q.services, s)
		}
	}
	if asked && len(q.files) == 0 && len(q.services) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("query"), queries, "may not be empty"))
	}
	at := func(name string) *time.Time {
		v := values.Get(name)
		if v == "" {
			return nil
		}
		t, err := time.Parse(time.RFC3339, v)
		if err != nil {
			errs = append(errs, field.Invalid(field.NewPath(name), v, "invalid time format"))
			return nil
		}
		return &t
	}
	count := func(name string) *int {
		v := values.Get(name)
		if v == "" {
			return nil
		}
		i, err := strconv.Atoi(v)
		if err != nil {
			errs = append(errs, field.Invalid(field.NewPath(name), v, err.Error()))
			return nil
		}
		return &i
	}
	q.since, q.until = at("sinceTime"), at("untilTime")
	q.boot, q.tailLines = count("boot"), count("tailLines")
	q.pattern = values.Get("pattern")
	if len(errs) > 0 || len(q.files) == 0 && len(q.services) == 0 && q.lineChoice == (lineChoice{}) {
		return nil, errs
	}
	return q, nil
}

// validate returns what of a query can't be answered, with upstream's words.
func (n *nodeLogs) validate(q *nodeLogQuery) (errs field.ErrorList) {
	query := field.NewPath("query")
	for _, s := range q.services {
		if len(s) > longestService {
			errs = append(errs, field.Invalid(query, s, fmt.Sprintf("length must be less than %d", longestService)))
		} else if n.unsafe.MatchString(s) {
			errs = append(errs, field.Invalid(query, s, "input contains unsupported characters"))
		}
	}
	if len(q.services) > mostServices {
		errs = append(errs, field.TooMany(query, len(q.services), mostServices))
	}
	switch {
	case len(q.files) == 0 && len(q.services) == 0:
		errs = append(errs, field.Required(query, "cannot be empty with options"))
	case len(q.files) > 0 && len(q.services) > 0:
		errs = append(errs, field.Invalid(query, fmt.Sprintf("%v, %v", q.files, q.services), "cannot specify a file and service"))
	case len(q.files) > 1:
		errs = append(errs, field.Invalid(query, q.files, "cannot specify more than one file"))
	case len(q.files) == 1 && q.lineChoice != (lineChoice{}):
		errs = append(errs, field.Invalid(query, q.files, "cannot specify file with options"))
	case len(q.files) == 1:
		if err := n.stat(q.files[0]); err != nil {
			errs = append(errs, field.Invalid(query, q.files, err.Error()))
		}
	}
	if q.since != nil && q.until != nil && q.since.After(*q.until) {
		errs = append(errs, field.Invalid(field.NewPath("untilTime"), q.until, "must be after `sinceTime`"))
	}
	if q.boot != nil && *q.boot > 0 {
		errs = append(errs, field.Invalid(field.NewPath("boot"), *q.boot, "must be less than 1"))
	}
	if q.tailLines != nil {
		if says := validation.IsInRange(*q.tailLines, 0, mostTailLines); len(says) > 0 {
			errs = append(errs, field.Invalid(field.NewPath("tailLines"), *q.tailLines, says[0]))
		}
	}
	if _, err := syntax.Parse(q.pattern, syntax.Perl); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("pattern"), q.pattern, err.Error()))
	}
	return errs
}

// stat looks at a file of the directory, and at none outside it.
func (n *nodeLogs) stat(name string) error {
	root, err := os.OpenRoot(n.dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	_, err = root.Stat(name)
	return err
}

// write writes the services' logs: first of those that the journal knows, then of files. What can't
// be had is a line among them, since the answer has begun.
func (n *nodeLogs) write(ctx context.Context, w io.Writer, q *nodeLogQuery) {
	var units strings.Builder
	known := n.journalctl(ctx, &units, "--field", "_SYSTEMD_UNIT") == nil
	var inJournal, inFiles []string
	for _, s := range q.services {
		if known && strings.Contains(units.String(), s+".service") {
			inJournal = append(inJournal, s)
		} else {
			inFiles = append(inFiles, s)
		}
	}
	if len(inJournal) > 0 {
		err := n.journalctl(ctx, w, q.journalArgs(inJournal)...)
		var exit *exec.ExitError // it has said itself why
		if err != nil && !errors.As(err, &exit) && (q.boot == nil || *q.boot == 0) {
			fmt.Fprint(w, "\nerror: journal output not available\n")
		}
	}
	if len(inFiles) > 0 && q.lineChoice != (lineChoice{}) {
		fmt.Fprintf(w, "\noptions present and query resolved to log files for %v\ntry without specifying options\n", inFiles)
		return
	}
	for _, s := range inFiles {
		if err := n.copyFile(ctx, w, s); errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(w, "\nlog not found for %s\n", s)
		} else if err != nil {
			fmt.Fprintf(w, "\nerror getting log for %s: %v\n", s, err)
		}
	}
}

// journalArgs are journalctl's for services.
func (q *nodeLogQuery) journalArgs(services []string) []string {
	args := []string{"--utc", "--no-pager", "--output=short-precise"}
	if q.since != nil {
		args = append(args, "--since="+q.since.Format(journalTime))
	}
	if q.until != nil {
		args = append(args, "--until="+q.until.Format(journalTime))
	}
	if q.tailLines != nil {
		args = append(args, "--pager-end", "--lines="+strconv.Itoa(*q.tailLines))
	}
	for _, s := range services {
		args = append(args, "--unit="+s)
	}
	if q.pattern != "" {
		args = append(args, "--grep="+q.pattern)
	}
	if q.boot != nil {
		args = append(args, "--boot", strconv.Itoa(*q.boot))
	}
	return args
}

// copyFile copies the first file of a service that there is.
func (n *nodeLogs) copyFile(ctx context.Context, w io.Writer, service string) error {
	var err error
	for _, name := range []string{service, service + ".log", service + "/" + service + ".log"} {
		if err = n.copyNamed(ctx, w, name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

func (n *nodeLogs) copyNamed(ctx context.Context, w io.Writer, name string) error {
	f, err := os.OpenInRoot(n.dir, name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil {
		return err
	} else if info.IsDir() {
		return fs.ErrNotExist
	}
	stop := context.AfterFunc(ctx, func() { _ = f.Close() })
	defer stop()
	_, err = io.Copy(w, f)
	return err
}
