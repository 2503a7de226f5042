package document

import (
	"errors"
	"regexp"
	"time"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// ParseImages reads a catalogue: a list of images as in a scenario's
// spec.images, a mapping that has it as images, or a scenario.
func ParseImages(file string, data []byte) ([]fakecri.Image, error) {
	var out []fakecri.Image
	err := parseParts(file, data, "images", func(l *loader, list decode.Place) {
		var images []Image
		l.part(list, &images, func() { checkImages(list, images) })
		out = append(out, RuntimeImages(images)...)
	})
	return out, err
}

// ParsePrograms reads what containers do: a list of programs as in a scenario's
// spec.programs, a mapping that has it as programs, or a scenario.
func ParsePrograms(file string, data []byte) ([]fakecri.Program, error) {
	var out []fakecri.Program
	err := parseParts(file, data, "programs", func(l *loader, list decode.Place) {
		var programs []Program
		l.part(list, &programs, func() {})
		out = append(out, RuntimePrograms(programs)...)
	})
	return out, err
}

// partFaults are read from files in more ways than other parts.
const partFaults = "faults"

// ParseFaults reads faults of a container runtime: a list, or a mapping that
// has it as faults, of what a scenario's action has as fault.cri. Each may
// also be written as `cri: {...}`, or as an action, `{at: 10s, fault: {cri:
// {...}}}`, whose time counts from when the faults are set. A single fault
// needs no list.
func ParseFaults(file string, data []byte) ([]fakecri.Fault, error) {
	var out []fakecri.Fault
	err := parseParts(file, data, partFaults, func(l *loader, list decode.Place) {
		for _, at := range list.Items() {
			if f, begin := l.fault(at); f != nil {
				rule := f.Runtime()
				rule.From = begin
				out = append(out, rule)
			}
		}
	})
	return out, err
}

// fault reads one of the faults of a file.
func (l *loader) fault(at decode.Place) (*action.CRIFault, time.Duration) {
	var x struct {
		At    time.Duration `json:"at"`
		Fault *action.Fault `json:"fault"`
	}
	switch {
	case at.Field("fault").Written():
		l.part(at, &x, func() { checkPartFault(at.Field("fault"), x.Fault) })
	case at.Field("cri").Written(), at.Field("api").Written(), at.Field("partition").Written():
		l.part(at, &x.Fault, func() { checkPartFault(at, x.Fault) })
	default:
		x.Fault = &action.Fault{}
		l.part(at, &x.Fault.CRI, func() {})
	}
	if x.Fault == nil {
		return nil, 0
	}
	return x.Fault.CRI, x.At
}

// checkPartFault checks a fault that is a runtime's.
func checkPartFault(at decode.Place, f *action.Fault) {
	switch {
	case f == nil:
	case f.CRI == nil && (f.API != nil || f.Partition != nil):
		at.Errorf("a container runtime has faults of cri only")
	default:
		f.Check(action.Place{Place: at, Scope: &value.Scope{}})
	}
}

// part decodes a part of a scenario, and checks it as that of a scenario without
// nodes; check has what is the whole's to check.
func (l *loader) part(at decode.Place, into any, check func()) {
	l.checks = nil
	before := at.Errors()
	at.Decode(into)
	at.Settle(before)
	check()
	for _, c := range l.checks {
		c(&value.Scope{})
	}
}

// inFault is the way to a runtime's fault within an action, which nobody needs to
// write.
var inFault = regexp.MustCompile(`^(faults\[\d+\])(\.fault)?(\.cri)?`)

// parseParts calls read with the list of each document of a file.
func parseParts(file string, data []byte, what string, read func(*loader, decode.Place)) error {
	l := newLoader(LoadOptions{})
	for _, doc := range l.r.Documents(file, data) {
		if list := part(doc, what); list.Written() {
			read(l, list.Named(what))
		}
	}
	err := l.r.Err()
	if list := (decode.Errors{}); errors.As(err, &list) {
		for _, e := range list {
			e.Path = inFault.ReplaceAllString(e.Path, "$1")
		}
	}
	return err
}

// part returns the list in a document, which is not written if there is none.
func part(doc decode.Place, what string) decode.Place {
	none := decode.Place{}
	if doc.IsList() {
		return doc
	}
	if !doc.IsMapping() {
		doc.Mismatch("a list of " + what)
		return none
	}
	if spec := doc.Field("spec"); spec.Written() && doc.Field("kind").Written() && what != partFaults {
		return spec.Field(what) // a scenario
	}
	list := doc.Field(what)
	switch {
	case list.Written():
	case what == partFaults:
		return doc.Alone()
	default:
		doc.Refuse("want a list of %s, or %s: with one", what, what)
		return none
	}
	entries, _ := doc.Entries("")
	for _, e := range entries {
		if name := e.Name(); name != what {
			e.RefuseKey("unknown field %q beside %s", decode.Short(name), what)
			return none
		}
	}
	if !list.IsList() {
		list.Mismatch("a list")
		return none
	}
	return list
}
