package scenarios

import (
	"fmt"
	gopath "path"
	"reflect"
	"strings"
	"time"
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
	v.uses(at, b)
	v.answers(at, b)
	for i := range b.Logs {
		if b.Logs[i].Count < 0 {
			v.errorf(fmt.Sprintf("%s.logs[%d].count", at, i), "%d is negative", b.Logs[i].Count)
		}
	}
}

// answers checks what a container says to those who ask it something.
func (v *validator) answers(at string, b *Behaviour) {
	for i := range b.Ports {
		p := &b.Ports[i]
		at := fmt.Sprintf("%s.ports[%d]", at, i)
		if p.Port < 1 || p.Port > 65535 {
			v.errorf(at+".port", "the port %d is not within 1 and 65535", p.Port)
		}
		v.span(at, p.After, p.Until)
		for k := range p.HTTP {
			a := &p.HTTP[k]
			at := fmt.Sprintf("%s.http[%d]", at, k)
			if a.Status != 0 && (a.Status < 100 || a.Status > 599) {
				v.errorf(at+".status", "the status code %d is not within 100 and 599", a.Status)
			}
			if a.Path != "" && strings.IndexByte("/*?", a.Path[0]) < 0 {
				v.errorf(at+".path", "%q begins with no slash, as every path does", a.Path)
			}
			v.span(at, a.After, a.Until)
		}
		for k := range p.GRPC {
			v.span(fmt.Sprintf("%s.grpc[%d]", at, k), p.GRPC[k].After, p.GRPC[k].Until)
		}
	}
	for i := range b.Exec {
		x := &b.Exec[i]
		at := fmt.Sprintf("%s.exec[%d]", at, i)
		v.exitCode(at+".exit", x.Exit)
		v.span(at, x.After, x.Until)
	}
}

// span checks an after and an until, of which 0 means for ever.
func (v *validator) span(at string, after, until time.Duration) {
	if until > 0 && until <= after {
		v.errorf(at+".until", "%s is not later than after, %s", until, after)
	}
}

// imageConfig checks what containers get of an image.
func (v *validator) imageConfig(at string, im *Image) {
	for i, c := range im.Commands {
		if c == "" || strings.Contains(c, "/") && (!gopath.IsAbs(c) || gopath.Clean(c) != c) {
			v.errorf(fmt.Sprintf("%s.commands[%d]", at, i), "%q is neither a name nor an absolute path", c)
		}
	}
	if im.WorkingDir != "" && !gopath.IsAbs(im.WorkingDir) {
		v.errorf(at+".workingDir", "%q is no absolute path", im.WorkingDir)
	}
}

func (v *validator) exitCode(at string, c int32) {
	if c < 0 || c > 255 {
		v.errorf(at, "the exit code %d is not within 0 and 255", c)
	}
}
