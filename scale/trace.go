package scale

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/scenarios"
)

// Trace is pods with their arrivals, requests, usage and lifetimes. Two formats
// are read, told apart by their columns; docs/scale.md describes them. It is kept
// as it was read: a few dozen bytes a pod, so that a million fit. Cut changes it in place. After
// that it is only read, by the feed and on nodes' loops.
type Trace struct {
	rows []row // by arrival
}

// row is a pod of a trace. lifetime and runFor are two ends: somebody deletes the
// pod, or its container exits. Usage is a constant: neither format has it over time. Fields are
// few and small on purpose.
type row struct {
	namespace, name string
	arrival         time.Duration
	// lifetime is from the arrival to the deletion; 0: for ever.
	lifetime time.Duration
	// runFor is after how long the container exits by itself; 0: never.
	runFor time.Duration
	exit   int32
	cpu    int64 // millicores, used
	memory int64 // bytes, used
	image  string
	shape  *shape
}

// shape is what rows have in common: they share a spec. A trace of a million pods has some
// hundred combinations of requests; each is there once, found by traceParser.shape.
type shape struct {
	labels           map[string]string
	requests, limits v1.ResourceList
	selector         map[string]string
	affinity         *v1.Affinity
}

// cellError is what is wrong with a cell. The position is that of the cell, of which the CSV
// reader keeps line and column, quotes included.
func cellError(file string, rec *csv.Reader, field int, column, format string, args ...any) *scenarios.LoadError {
	line, col := rec.FieldPos(field)
	return &scenarios.LoadError{Pos: scenarios.Position{File: file, Line: line, Column: col}, Path: column, Message: fmt.Sprintf(format, args...)}
}

// fileError is what is wrong with a whole file. An error of the CSV reader knows its own line,
// which is better than any that the caller has.
func fileError(file string, line int, format string, args ...any) *scenarios.LoadError {
	e := &scenarios.LoadError{Pos: scenarios.Position{File: file}, Message: fmt.Sprintf(format, args...)}
	var syntax *csv.ParseError
	for _, a := range args {
		if err, ok := a.(error); ok && errors.As(err, &syntax) {
			e.Pos.Line, e.Pos.Column, e.Message = syntax.Line, syntax.Column, syntax.Err.Error()
			return e
		}
	}
	if line > 0 {
		e.Pos.Line, e.Pos.Column = line, 1
	}
	return e
}

// maxAmount bounds the amounts of a trace: 1Pi. Sums over a node stay far from the end of an
// int64.
const maxAmount = 1 << 50

// maxTraceErrors bounds how many errors of a trace are told.
const maxTraceErrors = 20

// ReadTrace reads a trace in CSV. Errors are scenarios.LoadErrors: what is wrong,
// with file, line and column. Rows may be in any order; they are sorted by
// arrival, and equal ones stay as they were. It reads to the end, or to maxTraceErrors mistakes:
// of a converted file all rows tend to be wrong in the same way.
func ReadTrace(file string, in io.Reader) (*Trace, error) {
	p, lerr := newTraceParser(file, in)
	if lerr != nil {
		return nil, scenarios.LoadErrors{lerr}
	}
	rec := p.rec
	read := p.own
	if _, ok := p.columns["cpu_milli"]; ok {
		read = p.openb
	}
	if err := p.checkColumns(); err != nil {
		return nil, scenarios.LoadErrors{err}
	}
	t := &Trace{}
	for {
		var err error
		p.cells, err = rec.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			p.errs = append(p.errs, fileError(file, 0, "%v", err))
			break
		}
		if r, ok := read(); ok {
			t.rows = append(t.rows, r)
		}
		if len(p.errs) >= maxTraceErrors || len(t.rows) > MaxPods {
			break
		}
	}
	switch {
	case len(p.errs) > 0:
		return nil, p.errs
	case len(t.rows) == 0:
		return nil, scenarios.LoadErrors{fileError(file, 0, "there are no pods in this trace")}
	case len(t.rows) > MaxPods:
		return nil, scenarios.LoadErrors{fileError(file, 0, "more than %d pods", MaxPods)}
	}
	// Stable, so that pods of one time are created in the file's order in each run.
	slices.SortStableFunc(t.rows, func(a, b row) int { return int(min(max(a.arrival-b.arrival, -1), 1)) })
	return t, nil
}

// Pods is how many pods there are.
func (t *Trace) Pods() int { return len(t.rows) }

// End is when the last pod that ends has ended, or the last one arrives. What lives for ever
// counts by its arrival.
func (t *Trace) End() time.Duration {
	var end time.Duration
	for i := range t.rows {
		r := &t.rows[i]
		end = max(end, r.arrival+max(r.lifetime, r.runFor))
	}
	return end
}

// Cut leaves out what is over before from, has what lives then arrive at once,
// and makes all times shorter by a factor of speed, which is positive. A week of
// a trace can so be begun in its middle and run in a day. A pod that is running at from arrives
// at 0 with the rest of its life. Scaled times are at least a millisecond, since 0 is for ever.
func (t *Trace) Cut(from time.Duration, speed float64) {
	scaled := func(d time.Duration) time.Duration {
		if d == 0 {
			return 0
		}
		return time.Duration(min(max(float64(d)/speed, float64(time.Millisecond)), float64(maxSpan)))
	}
	// kept writes over the rows from the front, which is safe since it never gets ahead.
	kept := t.rows[:0]
	for _, r := range t.rows {
		past := max(from-r.arrival, 0)
		if r.lifetime > 0 && r.lifetime <= past || r.runFor > 0 && r.runFor <= past {
			continue
		}
		if r.lifetime > 0 {
			r.lifetime = scaled(r.lifetime - past)
		}
		if r.runFor > 0 {
			r.runFor = scaled(r.runFor - past)
		}
		r.arrival = scaled(max(r.arrival-from, 0))
		kept = append(kept, r)
	}
	t.rows = kept
}

// traceParser reads one file. Errors are collected, not the first alone: whoever
// converts a trace wants to see what is wrong throughout. cells and the record behind them are
// reused for each row (csv.Reader.ReuseRecord); what is kept of a row is copied out, as the
// strings of a record are.
type traceParser struct {
	file    string
	rec     *csv.Reader
	columns map[string]int
	order   []string
	cells   []string
	errs    scenarios.LoadErrors
	shapes  map[string]*shape
	names   map[string]int
	images  map[string]bool // those that can be pulled
}

// newTraceParser reads the line of column names.
func newTraceParser(file string, in io.Reader) (*traceParser, *scenarios.LoadError) {
	text := bufio.NewReader(in)
	// A byte order mark is no part of the first name, and would hide its quotes.
	if mark, _ := text.Peek(3); string(mark) == "\ufeff" {
		_, _ = text.Discard(3)
	}
	rec := csv.NewReader(text)
	// TrimLeadingSpace lets columns be aligned by hand; lines that begin with # are comments.
	rec.ReuseRecord, rec.TrimLeadingSpace, rec.Comment = true, true, '#'
	header, err := rec.Read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, fileError(file, 0, "there is no line of column names")
	case err != nil:
		return nil, fileError(file, 0, "%v", err)
	}
	p := &traceParser{file: file, rec: rec, columns: map[string]int{}, shapes: map[string]*shape{}, names: map[string]int{}, images: map[string]bool{}}
	for i, h := range header {
		h = strings.TrimSpace(h)
		if _, twice := p.columns[h]; twice {
			return nil, cellError(file, rec, i, h, "the column is there twice")
		}
		p.columns[h] = i
		p.order = append(p.order, h)
	}
	return p, nil
}

// The columns of Drydock's own format. A column whose name has a slash is an
// extended resource.
var ownColumns = []string{
	"name", "namespace", "arrival", "lifetime", "run_for", "exit_code", "cpu", "memory", "cpu_limit", "memory_limit", "cpu_usage", "memory_usage", "image", "node_selector",
}

// openbColumns are those of Alibaba's cluster-trace-gpu-v2023, openb_pod_list_*.csv.
var openbColumns = []string{
	"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time",
}

// checkColumns finds out which format a file is in, and names columns that it
// does not know: a misspelt one would be read as empty. The first format's columns must be named
// exactly; extended resources ("nvidia.com/gpu") are columns only there.
func (p *traceParser) checkColumns() *scenarios.LoadError {
	known, required := ownColumns, []string{"arrival"}
	if _, ok := p.columns["cpu_milli"]; ok {
		known, required = openbColumns, []string{"name", "cpu_milli", "memory_mib", "creation_time"}
	}
	for i, c := range p.order {
		extended := strings.Contains(c, "/") && len(validation.IsQualifiedName(c)) == 0
		if !slices.Contains(known, c) && (!extended || &known[0] != &ownColumns[0]) && c != "" {
			return cellError(p.file, p.rec, i, c, "there is no such column: there are %s", strings.Join(known, ", "))
		}
	}
	for _, c := range required {
		if _, ok := p.columns[c]; !ok {
			return fileError(p.file, 1, "%s: the column is missing", c)
		}
	}
	return nil
}

// cell is a cell's text; "" if it is empty or the column is not there. pandas writes nan for what
// is missing.
func (p *traceParser) cell(column string) string {
	i, ok := p.columns[column]
	if !ok {
		return ""
	}
	s := strings.TrimSpace(p.cells[i])
	if s == "nan" || s == "NaN" {
		return ""
	}
	return s
}

// bad notes what is wrong with a cell of the present row. The row is read on, to find its other
// mistakes.
func (p *traceParser) bad(column, format string, args ...any) {
	p.errs = append(p.errs, cellError(p.file, p.rec, p.columns[column], column, format, args...))
}

// time reads seconds, or a duration with a unit; ok is false for an empty cell. Traces mostly
// have seconds since some beginning, with or without a fraction.
func (p *traceParser) time(column string) (d time.Duration, ok bool) {
	s := p.cell(column)
	if s == "" {
		return 0, false
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && !math.IsNaN(f) {
		if f < 0 || f > maxSpan.Seconds() {
			p.bad(column, "%s is not within 0 and ten years", s)
			return 0, false
		}
		return seconds(f), true
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > maxSpan {
		p.bad(column, "%q is no time such as 90 (seconds) or 1m30s", s)
		return 0, false
	}
	return d, true
}

// span is time, but at least a millisecond where the cell is not empty: in a row 0
// is for ever. A pod that ended at once is not one that never ended.
func (p *traceParser) span(column string) time.Duration {
	d, ok := p.time(column)
	if !ok {
		return 0
	}
	return max(d, time.Millisecond)
}

// quantity reads an amount such as 500m or 1Gi. The library takes exponents that make numbers of
// any size; amounts are bounded afterwards.
func (p *traceParser) quantity(column string) (q resource.Quantity, ok bool) {
	s := p.cell(column)
	if s == "" {
		return q, false
	}
	q, err := resource.ParseQuantity(s)
	if err != nil || q.Sign() < 0 {
		p.bad(column, "%q is no quantity such as 500m or 1Gi", s)
		return q, false
	}
	if q.CmpInt64(maxAmount) > 0 {
		p.bad(column, "%s is more than 1Pi", s)
		return q, false
	}
	return q, true
}

// whole reads a whole number up to most.
func (p *traceParser) whole(column string, most int64) (n int64, ok bool) {
	s := p.cell(column)
	if s == "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64) // pandas writes 3.0
	if err != nil || f != math.Trunc(f) || f < 0 || f > float64(most) {
		p.bad(column, "%q is no whole number within 0 and %d", s, most)
		return 0, false
	}
	return int64(f), true
}

// own reads a row of Drydock's format. false means that the row had mistakes; all of them are in
// p.errs.
func (p *traceParser) own() (row, bool) {
	before := len(p.errs)
	r := row{namespace: p.cell("namespace"), image: p.cell("image")}
	r.arrival, _ = p.time("arrival")
	if p.cell("arrival") == "" {
		p.bad("arrival", "must be set")
	}
	r.lifetime = p.span("lifetime")
	r.runFor = p.span("run_for")
	if code, ok := p.whole("exit_code", 255); ok {
		if r.exit = int32(code); r.runFor == 0 {
			p.bad("exit_code", "needs run_for")
		}
	}
	// A name is checked once; a trace repeats few of them.
	if !p.images[r.image] {
		if err := (&fakecri.Image{Name: cmp.Or(r.image, defaultImage)}).Validate(); err != nil {
			p.bad("image", "%q: %v", r.image, err)
		}
		p.images[r.image] = true
	}
	requests, limits := v1.ResourceList{}, v1.ResourceList{}
	set := func(list v1.ResourceList, name v1.ResourceName, column string) {
		if q, ok := p.quantity(column); ok && !q.IsZero() {
			list[name] = q
		}
	}
	// A request of 0 is one that is said: it does not become the limit. The API defaults a
	// missing request to the limit; an explicit 0 stays (pkg/apis/core/v1/defaults.go).
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		if q, ok := p.quantity(string(name)); ok {
			requests[name] = q
		}
	}
	set(limits, v1.ResourceCPU, "cpu_limit")
	set(limits, v1.ResourceMemory, "memory_limit")
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		if l, ok := limits[name]; ok && l.Cmp(requests[name]) < 0 {
			p.bad(string(name)+"_limit", "is less than what is requested")
		}
	}
	for _, c := range p.order {
		if strings.Contains(c, "/") {
			// Extended resources cannot be overcommitted: requests and limits must be equal (API
			// validation).
			if n, ok := p.whole(c, maxAmount); ok && n > 0 { // extended resources have both
				q := *resource.NewQuantity(n, resource.DecimalSI)
				requests[v1.ResourceName(c)], limits[v1.ResourceName(c)] = q, q
			}
		}
	}
	if q, ok := p.quantity("cpu_usage"); ok {
		r.cpu = q.MilliValue()
	}
	if q, ok := p.quantity("memory_usage"); ok {
		r.memory = q.Value()
	}
	r.shape = p.shape(shape{requests: requests, limits: limits, selector: p.selector()}, "")
	r.name = p.name(&r)
	return r, len(p.errs) == before
}

// selector reads "key=value;key=value". Semicolons, since commas divide the cells.
func (p *traceParser) selector() map[string]string {
	s := p.cell("node_selector")
	if s == "" {
		return nil
	}
	out := map[string]string{}
	for _, part := range strings.Split(s, ";") {
		k, v, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || len(validation.IsQualifiedName(k)) > 0 || len(validation.IsValidLabelValue(v)) > 0 {
			p.bad("node_selector", "%q is no label such as disk=ssd", part)
			return nil
		}
		out[k] = v
	}
	return out
}

// name is the row's name, or one by its number. Names of other systems have underscores and
// capitals, which a pod's name cannot have. Names must be unique in their namespace in the whole
// file, whether or not the pods live at the same time: behave finds rows by them.
func (p *traceParser) name(r *row) string {
	if r.namespace == "" {
		r.namespace = metav1.NamespaceDefault
	} else if msgs := validation.IsDNS1123Label(r.namespace); len(msgs) > 0 {
		p.bad("namespace", "%q: %s", r.namespace, msgs[0])
	}
	line, _ := p.rec.FieldPos(0)
	name := strings.ReplaceAll(strings.ToLower(p.cell("name")), "_", "-")
	if name == "" {
		name = fmt.Sprintf("pod-%d", line)
	}
	if msgs := validation.IsDNS1123Subdomain(name); len(msgs) > 0 {
		p.bad("name", "%q: %s", name, msgs[0])
	}
	if first := p.names[r.namespace+"/"+name]; first > 0 {
		p.bad("name", "%q is on line %d too", name, first)
	}
	p.names[r.namespace+"/"+name] = line
	return name
}

// shape returns the shape that all rows share that ask for the same; affinity
// tells affinities apart. The key must tell apart all that template() makes a pod of.
func (p *traceParser) shape(s shape, affinity string) *shape {
	key := fmt.Sprint(listKey(s.requests), "|", listKey(s.limits), "|", s.labels, "|", s.selector, "|", affinity)
	if p.shapes[key] == nil {
		p.shapes[key] = &s
	}
	return p.shapes[key]
}

// listKey writes amounts so that equal ones are equal. Quantity.String is canonical, so 0.5 and
// 500m are one.
func listKey(l v1.ResourceList) string {
	var parts []string
	for name, q := range l { //drydock:unordered sorted below
		parts = append(parts, string(name)+"="+q.String())
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
