package value

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/ground/usage"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
)

// Unit is what an amount is counted in.
type Unit struct {
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

// Bytes is for memory and disks.
func Bytes() Unit {
	return Unit{"bytes", maxAmount, func(q resource.Quantity) int64 { return q.Value() }, 1}
}

// Count is for what comes in whole numbers without a unit.
func Count() Unit {
	return Unit{"", maxAmount, func(q resource.Quantity) int64 { return q.Value() }, 1}
}

// Cores is counted in thousandths.
func Cores() Unit {
	return Unit{"cores", maxCores * 1000, func(q resource.Quantity) int64 { return q.MilliValue() }, 1000}
}

// Amount says what is wrong with an amount, or what it is.
func (u Unit) Amount(q resource.Quantity) (int64, error) {
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

// CheckLeast checks an amount that is at least this much.
func (u Unit) CheckLeast(at decode.Place, q *resource.Quantity, least int64) {
	if q == nil || at.Bad() {
		return
	}
	if n, err := u.Amount(*q); err != nil {
		at.Errorf("%v", err)
	} else if n < least {
		at.Errorf("must be at least %d", least)
	}
}

// Check checks a usage, which is counted in a unit that only its field knows,
// and makes its curve.
func (u *Usage) Check(at decode.Place, in Unit) {
	if u == nil || at.Bad() {
		return
	}
	before := at.Errors()
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
		at.Errorf("needs an amount, or one of value, ramp, lines, steps, periodic and file")
		return
	case 1:
	default:
		at.Field(kinds[1]).Errorf("a usage is one thing, but this is %s", strings.Join(kinds, " and "))
		return
	}
	c := u.shape(at, in)
	if c == nil || at.Errors() > before {
		return
	}
	u.Curve = u.modified(at, c, in)
}

// shape makes the curve without repetition and noise.
func (u *Usage) shape(at decode.Place, in Unit) *usage.Curve {
	var c *usage.Curve
	var err error
	switch {
	case u.Value != nil:
		c = usage.Constant(amount(at, *u.Value, in))
	case u.Ramp != nil:
		at = at.Field("ramp")
		if u.Ramp.Over == 0 {
			at.Field("over").Errorf("must be more than 0s")
		}
		c = usage.Ramp(amount(at.Field("from"), u.Ramp.From, in), amount(at.Field("to"), u.Ramp.To, in), u.Ramp.Over)
	case u.Lines != nil:
		at = at.Field("lines")
		if points, ok := points(at, u.Lines, in, true); ok {
			c, err = usage.Lines(points)
		}
	case u.Steps != nil:
		at = at.Field("steps")
		if points, ok := points(at, u.Steps, in, false); ok {
			c, err = usage.Steps(points)
		}
	case u.Periodic != nil:
		p := u.Periodic
		at = at.Field("periodic")
		low, high := amount(at.Field("low"), p.Low, in), amount(at.Field("high"), p.High, in)
		switch {
		case high < low:
			at.Field("high").Errorf("%s is less than low, %s", p.High.String(), p.Low.String())
			return nil
		case p.Period < minSpan:
			at.Field("period").Errorf("%v is less than %v", p.Period, minSpan)
			return nil
		case p.Phase >= p.Period:
			at.Field("phase").Errorf("%v is not within the period, %v", p.Phase, p.Period)
		}
		shape := map[string]usage.Shape{"square": usage.Square, "sine": usage.Sine}[p.Shape] // else Triangle
		if c, err = usage.Periodic(low, high, p.Period, shape); err == nil {
			c = c.Phase(p.Phase)
		}
	default:
		return csv(at.Field("file"), u.File, in)
	}
	if err != nil {
		at.Errorf("%v", err)
		return nil
	}
	return c
}

func amount(at decode.Place, q resource.Quantity, in Unit) int64 {
	n, err := in.Amount(q)
	if err != nil {
		at.Errorf("%v", err)
	}
	return n
}

// points checks that times ascend; jumps allows two at one time.
func points(at decode.Place, list []UsagePoint, in Unit, jumps bool) ([]usage.Point, bool) {
	if len(list) == 0 {
		at.Errorf("there must be at least one point")
		return nil, false
	}
	ok := true
	var out []usage.Point
	for i, p := range list {
		at := at.Index(i)
		switch {
		case i == 0:
		case p.At < list[i-1].At, p.At == list[i-1].At && !jumps:
			at.Field("at").Errorf("%v is not after the point before, %v", p.At, list[i-1].At)
			ok = false
		case i > 1 && p.At == list[i-2].At:
			at.Field("at").Errorf("this is the third point at %v", p.At)
			ok = false
		}
		out = append(out, usage.Point{At: p.At, Value: amount(at.Field("value"), p.Value, in)})
	}
	return out, ok
}

// modified adds repetition and noise.
func (u *Usage) modified(at decode.Place, c *usage.Curve, in Unit) *usage.Curve {
	if at.Field("repeat").Written() {
		var err error
		switch {
		case u.Value != nil || u.Periodic != nil:
			at.Field("repeat").Errorf("an amount that stays, or is periodic, repeats anyway")
		default:
			if c, err = c.Repeat(u.Repeat); err != nil {
				at.Field("repeat").Errorf("%v", err)
			}
		}
	}
	if n := u.Noise; n != nil {
		switch set := at.Field("noise").Field("every").Written(); {
		case !set:
			n.Every = defaultNoiseEvery
		case n.Every < minSpan:
			at.Field("noise").Field("every").Errorf("%v is less than %v", n.Every, minSpan)
			return c
		}
		with, err := c.WithNoise(amount(at.Field("noise").Field("amplitude"), n.Amplitude, in), n.Every)
		if err != nil {
			at.Field("noise").Errorf("%v", err)
		}
		c = with
	}
	return c
}

var csvLine = regexp.MustCompile(`^line ([0-9]+): `)

// csv reads a curve from a file.
func csv(at decode.Place, name string, in Unit) *usage.Curve {
	file, data, ok := at.ReadFile(name)
	if !ok {
		return nil
	}
	points, err := usage.ParseCSV(bytes.NewReader(data), func(s string) (int64, error) {
		q, ok := decode.ParseQuantity(s)
		if !ok {
			return 0, errors.New("no quantity such as 500m or 1Gi")
		}
		return in.Amount(q)
	})
	var c *usage.Curve
	if err == nil {
		c, err = usage.Lines(points)
	}
	if err != nil {
		pos, text := decode.Position{File: file}, err.Error()
		if m := csvLine.FindStringSubmatch(text); m != nil {
			pos.Line, _ = strconv.Atoi(m[1])
			pos.Column, text = 1, text[len(m[0]):]
		}
		at.Report(pos, text)
		return nil
	}
	return c
}
