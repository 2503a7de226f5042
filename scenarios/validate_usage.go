package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	gopath "path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/ground/usage"
)

// unit is what a usage is counted in.
type unit struct {
	what string // of the amount
	max  int64
	of   func(resource.Quantity) int64
	// parts are how many of it a quantity of 1 is.
	parts int64
}

const (
	// maxAmount and maxCores keep sums over a node within an int64.
	maxAmount = int64(1) << 50
	maxCores  = 1_000_000
	// defaultNoiseEvery is how long a draw of noise lasts.
	defaultNoiseEvery = 10 * time.Second
	// minSpan is the shortest period or draw of noise.
	minSpan = time.Millisecond
)

func bytesUnit() unit {
	return unit{"bytes", maxAmount, func(q resource.Quantity) int64 { return q.Value() }, 1}
}
func countUnit() unit {
	return unit{"", maxAmount, func(q resource.Quantity) int64 { return q.Value() }, 1}
}
func coresUnit() unit {
	return unit{"cores", maxCores * 1000, func(q resource.Quantity) int64 { return q.MilliValue() }, 1000}
}

// amount says what is wrong with an amount, or what it is.
func (u unit) amount(q resource.Quantity) (int64, error) {
	n := u.of(q)
	most := resource.NewQuantity(u.max/u.parts, resource.BinarySI)
	if u.parts > 1 {
		most.Format = resource.DecimalSI
	}
	switch {
	case q.Sign() < 0:
		return 0, fmt.Errorf("%s is negative", q.String())
	case q.Cmp(*most) > 0:
		return 0, fmt.Errorf("%s is more than %s", q.String(), most.String())
	case u.parts == 1 && q.Cmp(*resource.NewQuantity(n, resource.DecimalSI)) != 0:
		return 0, fmt.Errorf("%s is no whole number%s (m is a thousandth; M and Mi are millions)", q.String(), strings.TrimSuffix(" of "+u.what, " of "))
	}
	return n, nil
}

// uses checks what a container uses and writes.
func (v *validator) uses(at string, b *Behaviour) {
	v.usage(at+".memory", b.Memory, bytesUnit())
	v.usage(at+".cpu", b.CPU, coresUnit())
	v.usage(at+".processes", b.Processes, countUnit())
	v.usage(at+".logBytes", b.LogBytes, bytesUnit())
	seen := map[string]int{}
	for i := range b.Writes {
		w, at := &b.Writes[i], fmt.Sprintf("%s.writes[%d]", at, i)
		if w.Path != "" {
			if !gopath.IsAbs(w.Path) || gopath.Clean(w.Path) != w.Path {
				v.errorf(at+".path", "%q is no absolute path, or not the shortest", short(w.Path))
			}
			if k, ok := seen[w.Path]; ok {
				v.errorf(at+".path", "%q is that of writes[%d] too", short(w.Path), k)
			}
			seen[w.Path] = i
		}
		if w.Bytes == nil && w.Inodes == nil {
			v.errorf(at, "writes nothing: needs bytes or inodes")
		}
		v.usage(at+".bytes", w.Bytes, bytesUnit())
		v.usage(at+".inodes", w.Inodes, countUnit())
	}
}

// machineUsage checks what a machine uses outside of all pods; image says
// whether it has a file system of its own for images.
func (v *validator) machineUsage(at string, m *MachineUsage, image bool) {
	v.usage(at+".memory", m.Memory, bytesUnit())
	v.usage(at+".cpu", m.CPU, coresUnit())
	v.usage(at+".pids", m.PIDs, countUnit())
	v.usage(at+".nodefs", m.Nodefs, bytesUnit())
	v.usage(at+".nodefsInodes", m.NodefsInodes, countUnit())
	v.usage(at+".imagefs", m.Imagefs, bytesUnit())
	v.usage(at+".imagefsInodes", m.ImagefsInodes, countUnit())
	for _, f := range []struct {
		name string
		set  bool
	}{{"imagefs", m.Imagefs != nil}, {"imagefsInodes", m.ImagefsInodes != nil}} {
		if f.set && !image {
			v.errorf(at+"."+f.name, "the node has no file system of its own for images: see its filesystems.imagefs")
		}
	}
}

// usageChange checks the timeline's action.
func (v *validator) usageChange(at string, c *UsageChange) {
	if c.MachineUsage == (MachineUsage{}) {
		v.errorf(at, "changes nothing: needs memory, cpu, pids, nodefs, nodefsInodes, imagefs or imagefsInodes")
	}
	image := true
	names := v.s.SelectNodes(c.Node)
	for i := range v.s.Spec.Nodes {
		g := &v.s.Spec.Nodes[i]
		for _, n := range g.NodeNames() {
			if has(names, n) && (g.Filesystems == nil || g.Filesystems.Imagefs == nil) {
				image = false
			}
		}
	}
	v.machineUsage(at, &c.MachineUsage, image)
}

// filesystems checks a machine's disks and fills in what is meant.
func (v *validator) filesystems(at string, g *NodeGroup) {
	f := g.Filesystems
	if f == nil {
		return
	}
	storage := strings.TrimSuffix(at, ".filesystems") + ".capacity.ephemeral-storage"
	if f.Nodefs != nil && f.Nodefs.Capacity != nil && valueAt(v.doc, storage) != nil && f.Nodefs.Capacity.Cmp(*g.Capacity.StorageEphemeral()) != 0 {
		v.errorf(at+".nodefs.capacity", "%s is not the capacity's ephemeral-storage, %s: say one of them", f.Nodefs.Capacity.String(), g.Capacity.StorageEphemeral().String())
	}
	if f.Containerfs != "" && f.Imagefs == nil {
		v.errorf(at+".containerfs", "without an imagefs everything is on one disk")
	}
	for _, x := range []struct {
		name string
		fs   *Filesystem
	}{{"nodefs", f.Nodefs}, {"imagefs", f.Imagefs}} {
		if x.fs == nil {
			continue
		}
		for _, q := range []struct {
			name string
			q    *resource.Quantity
			unit unit
		}{{"capacity", x.fs.Capacity, bytesUnit()}, {"inodes", x.fs.Inodes, countUnit()}} {
			if q.q == nil {
				continue
			}
			if n, err := q.unit.amount(*q.q); err != nil {
				v.errorf(at+"."+x.name+"."+q.name, "%v", err)
			} else if n == 0 {
				v.errorf(at+"."+x.name+"."+q.name, "must be more than 0")
			}
		}
	}
}

// usage checks a usage and makes its curve.
func (v *validator) usage(at string, u *Usage, in unit) {
	if u == nil || v.isBad(at) {
		return
	}
	before := len(v.d.l.errs)
	var kinds []string
	for _, k := range []struct {
		name string
		set  bool
	}{{"value", u.Value != nil}, {"ramp", u.Ramp != nil}, {"lines", u.Lines != nil}, {"steps", u.Steps != nil}, {"periodic", u.Periodic != nil}, {"file", u.File != ""}} {
		if k.set {
			kinds = append(kinds, k.name)
		}
	}
	switch len(kinds) {
	case 0:
		v.errorf(at, "needs an amount, or one of value, ramp, lines, steps, periodic and file")
		return
	case 1:
	default:
		v.errorf(at+"."+kinds[1], "a usage is one thing, but this is %s", strings.Join(kinds, " and "))
		return
	}
	c := v.shape(at, u, in)
	if c == nil || len(v.d.l.errs) > before {
		return
	}
	u.Curve = v.modified(at, u, c, in)
}

// shape makes the curve without repetition and noise.
func (v *validator) shape(at string, u *Usage, in unit) *usage.Curve {
	var c *usage.Curve
	var err error
	switch {
	case u.Value != nil:
		c = usage.Constant(v.amount(at, *u.Value, in))
	case u.Ramp != nil:
		at += ".ramp"
		if u.Ramp.Over == 0 {
			v.errorf(at+".over", "must be more than 0s")
		}
		c = usage.Ramp(v.amount(at+".from", u.Ramp.From, in), v.amount(at+".to", u.Ramp.To, in), u.Ramp.Over)
	case u.Lines != nil:
		at += ".lines"
		if points, ok := v.points(at, u.Lines, in, true); ok {
			c, err = usage.Lines(points)
		}
	case u.Steps != nil:
		at += ".steps"
		if points, ok := v.points(at, u.Steps, in, false); ok {
			c, err = usage.Steps(points)
		}
	case u.Periodic != nil:
		p := u.Periodic
		at += ".periodic"
		low, high := v.amount(at+".low", p.Low, in), v.amount(at+".high", p.High, in)
		switch {
		case high < low:
			v.errorf(at+".high", "%s is less than low, %s", p.High.String(), p.Low.String())
			return nil
		case p.Period < minSpan:
			v.errorf(at+".period", "%v is less than %v", p.Period, minSpan)
			return nil
		case p.Phase >= p.Period:
			v.errorf(at+".phase", "%v is not within the period, %v", p.Phase, p.Period)
		}
		shape := map[string]usage.Shape{"square": usage.Square, "sine": usage.Sine}[p.Shape] // else Triangle
		if c, err = usage.Periodic(low, high, p.Period, shape); err == nil {
			c = c.Phase(p.Phase)
		}
	default:
		return v.csv(at+".file", u.File, in)
	}
	if err != nil {
		v.errorf(at, "%v", err)
		return nil
	}
	return c
}

func (v *validator) amount(at string, q resource.Quantity, in unit) int64 {
	n, err := in.amount(q)
	if err != nil {
		v.errorf(at, "%v", err)
	}
	return n
}

// points checks that times ascend; jumps allows two at one time.
func (v *validator) points(at string, list []UsagePoint, in unit, jumps bool) ([]usage.Point, bool) {
	if len(list) == 0 {
		v.errorf(at, "there must be at least one point")
		return nil, false
	}
	ok := true
	var out []usage.Point
	for i, p := range list {
		at := fmt.Sprintf("%s[%d]", at, i)
		switch {
		case i == 0:
		case p.At < list[i-1].At, p.At == list[i-1].At && !jumps:
			v.errorf(at+".at", "%v is not after the point before, %v", p.At, list[i-1].At)
			ok = false
		case i > 1 && p.At == list[i-2].At:
			v.errorf(at+".at", "this is the third point at %v", p.At)
			ok = false
		}
		out = append(out, usage.Point{At: p.At, Value: v.amount(at+".value", p.Value, in)})
	}
	return out, ok
}

// modified adds repetition and noise.
func (v *validator) modified(at string, u *Usage, c *usage.Curve, in unit) *usage.Curve {
	if valueAt(v.doc, at+".repeat") != nil {
		var err error
		switch {
		case u.Value != nil || u.Periodic != nil:
			v.errorf(at+".repeat", "an amount that stays, or is periodic, repeats anyway")
		default:
			if c, err = c.Repeat(u.Repeat); err != nil {
				v.errorf(at+".repeat", "%v", err)
			}
		}
	}
	if n := u.Noise; n != nil {
		switch set := valueAt(v.doc, at+".noise.every") != nil; {
		case !set:
			n.Every = defaultNoiseEvery
		case n.Every < minSpan:
			v.errorf(at+".noise.every", "%v is less than %v", n.Every, minSpan)
			return c
		}
		with, err := c.WithNoise(v.amount(at+".noise.amplitude", n.Amplitude, in), n.Every)
		if err != nil {
			v.errorf(at+".noise", "%v", err)
		}
		c = with
	}
	return c
}

var csvLine = regexp.MustCompile(`^line ([0-9]+): `)

// csv reads a curve from a file.
func (v *validator) csv(at, name string, in unit) *usage.Curve {
	file := name
	if !filepath.IsAbs(name) {
		file = filepath.Join(filepath.Dir(v.d.file), name)
	}
	data, err := v.d.l.opts.ReadFile(file)
	if err != nil {
		v.errorf(at, "cannot read the file: %v", err)
		return nil
	}
	points, err := usage.ParseCSV(bytes.NewReader(data), func(s string) (int64, error) {
		if !quantityForm.MatchString(s) {
			return 0, errors.New("no quantity such as 500m or 1Gi")
		}
		q, err := resource.ParseQuantity(s)
		if err != nil {
			return 0, errors.New("no quantity such as 500m or 1Gi")
		}
		return in.amount(q)
	})
	var c *usage.Curve
	if err == nil {
		c, err = usage.Lines(points)
	}
	if err != nil {
		pos, text := Position{File: file}, err.Error()
		if m := csvLine.FindStringSubmatch(text); m != nil {
			pos.Line, _ = strconv.Atoi(m[1])
			pos.Column, text = 1, text[len(m[0]):]
		}
		v.d.l.errs = append(v.d.l.errs, &LoadError{Pos: pos, Path: at, Message: oneLine(text)})
		return nil
	}
	return c
}
