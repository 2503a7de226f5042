package scenarios

import (
	"fmt"
	"reflect"
)

func (v *validator) program(at string, p *Program) {
	if len(p.Attempts) > 0 && !reflect.ValueOf(p.Behaviour).IsZero() {
		v.errorf(at+".attempts", "what is said beside attempts is not looked at: say it in the attempts")
	}
	v.behaviour(at, &p.Behaviour)
	for i := range p.Attempts {
		b := &p.Attempts[i]
		v.behaviour(fmt.Sprintf("%s.attempts[%d]", at, i), b)
		if len(b.Exits) > 0 {
			v.errorf(fmt.Sprintf("%s.attempts[%d].exits", at, i), "an attempt has one exit code: exit")
		}
	}
}

func (v *validator) behaviour(at string, b *Behaviour) {
	v.exitCode(at+".exit", b.Exit)
	for i, c := range b.Exits {
		v.exitCode(fmt.Sprintf("%s.exits[%d]", at, i), c)
	}
	if b.RunFor == nil || b.RunFor.Max == 0 {
		for _, f := range []struct {
			name string
			set  bool
		}{{"exit", b.Exit != 0}, {"exits", len(b.Exits) > 0}, {"signal", b.Signal != 0}, {"oomKilled", b.OOMKilled}} {
			if f.set {
				v.errorf(at+"."+f.name, "without runFor the container never exits by itself")
			}
		}
	}
	if b.RunFor != nil && b.RunFor.Max == 0 {
		v.errorf(at+".runFor", "must be more than 0s")
	}
	if b.Exit != 0 && len(b.Exits) > 0 {
		v.errorf(at+".exits", "there is exit too: only one of them is looked at")
	}
	v.exitCode(at+".onTerm.exit", b.OnTerm.Exit)
	if o := &b.OnTerm; o.Ignore && (o.Exit != 0 || o.After != nil || o.Unhandled) {
		v.errorf(at+".onTerm.ignore", "a container that ignores the signal does nothing else on it")
	} else if o.Unhandled && o.Exit != 0 {
		v.errorf(at+".onTerm.unhandled", "a container that dies of the signal has no exit code of its own")
	}
	v.usage(at+".memory", b.Memory)
	v.usage(at+".cpu", b.CPU)
	for i := range b.Logs {
		if b.Logs[i].Count < 0 {
			v.errorf(fmt.Sprintf("%s.logs[%d].count", at, i), "%d is negative", b.Logs[i].Count)
		}
	}
}

func (v *validator) exitCode(at string, c int32) {
	if c < 0 || c > 255 {
		v.errorf(at, "the exit code %d is not within 0 and 255", c)
	}
}

func (v *validator) usage(at string, u *Usage) {
	switch {
	case u == nil:
	case (u.Value == nil) == (u.Ramp == nil):
		v.errorf(at, "needs exactly one of value and ramp")
	case u.Value != nil:
		if u.Value.Sign() < 0 {
			v.errorf(at, "%s is negative", u.Value.String())
		}
	default:
		if u.Ramp.From.Sign() < 0 {
			v.errorf(at+".ramp.from", "%s is negative", u.Ramp.From.String())
		}
		if u.Ramp.To.Sign() < 0 {
			v.errorf(at+".ramp.to", "%s is negative", u.Ramp.To.String())
		}
		if u.Ramp.Over == 0 {
			v.errorf(at+".ramp.over", "must be more than 0s")
		}
	}
}
