package document

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/internal/text"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// notices collects what is worth saying of a document although nothing is wrong.
type notices struct {
	said []string
	// dropped counts, by file, the objects with fields that a server wrote.
	files   []string
	dropped map[string]*droppedFields
	custom  []value.Undefined
}

type droppedFields struct {
	objects int
	names   []string
}

func (n *notices) say(t string) {
	if !slices.Contains(n.said, t) {
		n.said = append(n.said, t)
	}
}

// drop notes fields of an object at a place.
func (n *notices) drop(at decode.Place, fields value.Dropped) {
	file := at.Pos().File
	d := n.dropped[file]
	if d == nil {
		d = &droppedFields{}
		if n.dropped == nil {
			n.dropped = map[string]*droppedFields{}
		}
		n.dropped[file] = d
		n.files = append(n.files, file)
	}
	d.objects++
	for _, f := range fields {
		if !slices.Contains(d.names, f) {
			d.names = append(d.names, f)
		}
	}
}

// all returns the notices of a document with those objects: what was said, a line for
// each file with fields that a server wrote, and one for all kinds of objects that nothing
// acts on, with or without a load model.
func (n *notices) all(objects []placedObject, load bool) []string {
	for _, file := range n.files {
		d := n.dropped[file]
		slices.Sort(d.names)
		n.say(fmt.Sprintf("%s: %s of %s: the API writes these itself; they are left out", file, strings.Join(d.names, ", "), text.Plural(d.objects, "object")))
	}
	if kinds := n.inert(objects, load); len(kinds) > 0 {
		n.say("stored, but nothing in a simulation acts on them: " + strings.Join(kinds, ", "))
	}
	return n.said
}

// inert lists the kinds of objects that nothing acts on, sorted.
func (n *notices) inert(objects []placedObject, load bool) []string {
	all := apiserver.NewKindsWith(apiserver.AllGates())
	var kinds []string
	defined := map[string]bool{}
	for _, o := range objects {
		if d, ok := o.Object.(*apiextensionsv1.CustomResourceDefinition); ok {
			defined[d.Spec.Group+"/"+d.Spec.Names.Kind] = true
		}
		if obj, ok := o.Object.(apiserver.Object); ok {
			if row := all.Of(obj); row != nil && row.Inert.With(false, load) {
				kinds = append(kinds, string(row.Kind))
			}
		}
	}
	for _, o := range n.custom {
		gvk := o.GroupVersionKind()
		if defined[gvk.Group+"/"+gvk.Kind] {
			kinds = append(kinds, gvk.Kind)
		} else {
			kinds = append(kinds, gvk.Kind+" (no definition of it in "+gvk.Group+" is applied: taken as it is)")
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}
