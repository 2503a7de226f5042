// Package kind is what the rest of the API knows of a kind of object, and the
// table that all kinds stand in. Nothing above it lists kinds: store, admission,
// trace and watches ask the row ([Info]) of an object's kind.
//
//   - kind.go: names, and the row
//   - typed.go: the part of a row that depends on the Go type, as functions that
//     a kind states or leaves out
//   - columns.go: what tables of objects show
//   - table.go: the table; decoding and validating manifests by it
//   - custom.go: what rows of custom resources have beyond others
//   - meta.go: the rules of metadata, which all kinds share
//   - notes.go: what the trace says of a write
//
// The rows themselves are package kinds, a file each.
package kind

import (
	"cmp"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/table"
)

// Object is an API object of one of the kinds that the API stores.
type Object = table.Object

// Kind names a kind of object as manifests do: "Pod".
type Kind string

// Watch says how nodes watch a kind. It decides who is told of a change.
type Watch int

const (
	// NotByNodes is for what only the control plane reads.
	NotByNodes Watch = iota
	// ByNode is for what belongs to a node: each watches its own.
	ByNode
	// ByName is for single objects, which pods name, or which a kubelet has made.
	ByName
	// Whole is for kinds that a node watches all objects of.
	Whole
)

// Info is one row of the table: all that the API knows of a kind. Rows are never
// written to after they were made, so that every server may share them.
type Info struct {
	// Kind names the kind. That of custom resources is the name of their definition
	// ("widgets.example.com"), since another group may have a kind of the same name.
	Kind Kind
	// CustomKind is what manifests of custom resources name the kind ("Widget");
	// "" for others, which are named as here.
	CustomKind     string
	Group, Version string
	// Resource is the plural, lower case, as requests name it: "pods".
	Resource string
	// ShortNames and Categories are what else kubectl calls the resource.
	ShortNames, Categories []string
	// Namespaced says that objects of the kind live in a namespace.
	Namespaced bool
	// CheckName is the rule for names, as in k8s.io/apimachinery/pkg/api/validation;
	// nil means NameIsDNSSubdomain.
	CheckName func(name string, prefix bool) []string
	// NeedsVersion refuses updates without a resource version: upstream's strategy
	// has AllowUnconditionalUpdate false.
	NeedsVersion bool
	// Meta says how the kind's own rules check metadata.
	Meta MetaRules
	// AnyFinalizer lets finalizers have names that don't say whose they are: the kind's
	// rules are those of k8s.io/apimachinery/pkg/api/validation, which don't ask.
	AnyFinalizer bool
	// StatusKeeps is the metadata that an update of the status doesn't reach.
	StatusKeeps KeptMeta
	// CreatesOnUpdate has a PUT of an object that isn't there make it
	// (AllowCreateOnUpdate).
	CreatesOnUpdate bool
	// OrphansByDefault orphans the dependents of an object that is deleted without
	// a propagation policy (DefaultGarbageCollectionPolicy).
	OrphansByDefault bool
	// DeleteWarning is what a client is told that deletes without a propagation
	// policy; "": nothing.
	DeleteWarning string
	// Subresources are those, besides status, through which objects are updated.
	Subresources []string
	// Views are the other groups and versions in which the kind is served.
	Views []View
	// ResetFields are the fields, as paths with dots, that a request doesn't reach and
	// so doesn't manage (GetResetFields), by the subresource that it is made on. Of one
	// that isn't named here: the status of the object itself, spec and metadata of the
	// status.
	ResetFields map[string][]string
	// ReturnsDeleted has a delete answered by the object, not by a status
	// (registry.Store.ReturnDeletedObject).
	ReturnsDeleted bool
	// ReadByAdmission says that a change of such an object may have pods admitted
	// otherwise, so that templates admitted before it are stale.
	ReadByAdmission bool
	// Unwritten says that a scenario's manifest has no objects of the kind: only
	// components write them, or clients.
	Unwritten bool
	// Inert says when nothing acts on objects of the kind: they are stored and checked,
	// and who makes one is told so.
	Inert Inert
	// Uncollected keeps the kind from the garbage collector, and so from what it
	// watches.
	Uncollected bool
	Watch       Watch
	// Of is the row of the resource that has a subresource which takes this kind, as pods'
	// is of Binding, where the kind is stored nowhere; nil: the kind is a resource itself.
	Of *Info
	// Custom is what rows of custom resources have beyond others; nil for others.
	Custom *Custom

	Strategy

	noun string // Kind in lower case, as trace records name it
}

// Noun returns the kind as trace records name it: "pod".
func (in *Info) Noun() string { return in.noun }

// Asked returns the row of the resource that a request for the kind names.
func (in *Info) Asked() *Info {
	if in.Of != nil {
		return in.Of
	}
	return in
}

// GroupResource returns what errors name.
func (in *Info) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: in.Group, Resource: in.Resource}
}

// Written returns the kind as manifests have it: "Pod".
func (in *Info) Written() string { return cmp.Or(in.CustomKind, string(in.Kind)) }

// GroupKind returns the group and the kind.
func (in *Info) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: in.Group, Kind: in.Written()}
}

// GroupVersionKind returns what objects carry as their type.
func (in *Info) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: in.Group, Version: in.Version, Kind: in.Written()}
}

// APIVersion returns the group and version in which the kind is served: "v1",
// "apps/v1".
func (in *Info) APIVersion() string {
	return schema.GroupVersion{Group: in.Group, Version: in.Version}.String()
}

// StorageKey returns where upstream stores an object (DefaultStorageFactory), below the
// prefix of all keys, since
// some errors tell.
func (in *Info) StorageKey(namespace, name string) string {
	prefix := in.Resource
	switch {
	case in.CustomKind != "" || in.Group == "apiextensions.k8s.io" || in.Group == "apiregistration.k8s.io":
		prefix = in.Group + "/" + prefix
	case prefix == "services":
		prefix = "services/specs"
	case prefix == "endpoints":
		prefix = "services/endpoints"
	case prefix == "nodes":
		prefix = "minions"
	case prefix == "replicationcontrollers":
		prefix = "controllers"
	case prefix == "ingresses":
		prefix = "ingress"
	}
	return path.Join("/", prefix, namespace, name)
}

// nounOf returns how records name a kind, whether it is served or not.
func nounOf(k Kind) string { return strings.ToLower(string(k)) }

// Change is one committed write.
type Change struct {
	// Type is watch.Added, watch.Modified or watch.Deleted.
	Type watch.EventType
	Kind Kind
	// Old is the object before the write; nil for Added.
	Old Object
	// New is the object after the write. For Deleted it is the last state,
	// with the resource version of the deletion. An event or a lease is good until
	// the hook returns, as Old is; who keeps one copies it.
	New Object
	// Verb is what was done: "create", "update", "patch", "delete", "bind",
	// "expire".
	Verb string
	// Subresource is "" or what the write was made on: "status", "resize", ...
	Subresource string
	// Version is the write's resource version.
	Version uint64
}

// Inert says when nothing acts on objects of a kind.
type Inert uint8

// When nothing acts on objects of a kind.
const (
	InertNever Inert = iota
	InertAlways
	InertWithoutClients // only clients' requests are subject to them
	InertWithoutLoad    // where requests cost nothing
)

// With reports whether nothing acts on the objects, with or without clients and a load
// model.
func (i Inert) With(clients, load bool) bool {
	return i == InertAlways || i == InertWithoutClients && !clients || i == InertWithoutLoad && !load
}
