package facade

import (
	"cmp"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apidiscoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/version"
	apidiscoveryv2conversion "k8s.io/apiserver/pkg/apis/apidiscovery/v2"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// groupOrder are the groups in the order in which they are listed (the priorities of
// pkg/controlplane/apiserver/aggregator.go). Others, which are those of custom resources,
// follow by name.
var groupOrder = []string{
	"", "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch",
	"certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io", "admissionregistration.k8s.io",
	"apiextensions.k8s.io", "scheduling.k8s.io", "coordination.k8s.io", "node.k8s.io", "discovery.k8s.io", "resource.k8s.io",
	"flowcontrol.apiserver.k8s.io",
}

// compareGroups orders groups as they are listed.
func compareGroups(a, b string) int {
	place := func(g string) int {
		if i := slices.Index(groupOrder, g); i >= 0 {
			return i
		}
		return len(groupOrder)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
}

// The verbs of resources and of their subresources.
var (
	allVerbs    = metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	customVerbs = metav1.Verbs{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	updateVerbs = metav1.Verbs{"get", "patch", "update"}
	createVerbs = metav1.Verbs{"create"}
)

// deletesCollection reports whether objects of a kind can be deleted all at once.
// Namespaces can't.
func deletesCollection(row *apiserver.KindInfo) bool { return row.Kind != apiserver.KindNamespace }

// discovered is what is served, as documents say it.
type discovered struct {
	groups []metav1.APIGroup
	// resources are those of each version, subresources among them, by name.
	resources map[schema.GroupVersion][]metav1.APIResource
	// aggregated are both in one, of the unnamed group and of the others, with the hashes
	// by which clients know whether they have it already.
	aggregated [2]*apidiscoveryv2.APIGroupDiscoveryList
	etags      [2]string
}

// discoveries keeps what is served until that changes.
type discoveries struct {
	mu    sync.Mutex
	of    uint64 // served.changes
	known *discovered
	// aggregated encodes aggregated documents.
	aggregated runtime.NegotiatedSerializer
}

func newDiscoveries() *discoveries {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apidiscoveryv2.AddToScheme, apidiscoveryv2beta1.AddToScheme, apidiscoveryv2conversion.RegisterConversions} {
		utilruntime.Must(add(s)) // types that don't go together are a mistake of the libraries
	}
	return &discoveries{aggregated: serializer.NewCodecFactory(s)}
}

// discover returns what is served now.
func (f *Facade) discover() *discovered {
	d := f.discoveries
	d.mu.Lock()
	defer d.mu.Unlock()
	kinds, changes := f.kinds.all()
	if d.known == nil || d.of != changes {
		d.known, d.of = newDiscovered(kinds), changes
	}
	return d.known
}

// newDiscovered describes kinds.
func newDiscovered(kinds []*servedKind) *discovered {
	d := &discovered{resources: map[schema.GroupVersion][]metav1.APIResource{}}
	for _, k := range kinds {
		gv := k.scope.Kind.GroupVersion()
		d.resources[gv] = append(d.resources[gv], k.discover()...)
	}
	versions := map[string][]string{}
	for gv, list := range d.resources {
		versions[gv.Group] = append(versions[gv.Group], gv.Version)
		slices.SortFunc(list, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	}
	d.aggregated = [2]*apidiscoveryv2.APIGroupDiscoveryList{{}, {}}
	for group, list := range versions {
		slices.SortFunc(list, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
		g := metav1.APIGroup{Name: group}
		for _, v := range list {
			g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: schema.GroupVersion{Group: group, Version: v}.String(), Version: v})
		}
		g.PreferredVersion = g.Versions[0]
		d.groups = append(d.groups, g)
	}
	slices.SortFunc(d.groups, func(a, b metav1.APIGroup) int { return compareGroups(a.Name, b.Name) })
	for _, g := range d.groups {
		to := d.aggregated[1]
		if g.Name == "" {
			to = d.aggregated[0]
		}
		to.Items = append(to.Items, d.aggregate(g))
	}
	for i, list := range d.aggregated {
		data, _ := json.Marshal(list) // of strings
		d.etags[i] = fmt.Sprintf("%X", sha512.Sum512(data))
	}
	return d
}

// discover describes a kind and its subresources.
func (k *servedKind) discover() []metav1.APIResource {
	kind, row := k.scope.Kind, k.row
	stored := row.GroupVersionKind()
	main := metav1.APIResource{
		Name: k.scope.Resource.Resource, SingularName: cmp.Or(k.singular, strings.ToLower(kind.Kind)), Namespaced: row.Namespaced, Kind: kind.Kind,
		Verbs: allVerbs, ShortNames: row.ShortNames, Categories: row.Categories,
		StorageVersionHash: discovery.StorageVersionHash(stored.Group, stored.Version, stored.Kind),
	}
	switch {
	case k.virtual != nil:
		main.Verbs, main.StorageVersionHash = k.virtual.verbs(), ""
	case row.CustomKind != "":
		main.Verbs = customVerbs
	case !deletesCollection(row):
		main.Verbs = slices.DeleteFunc(slices.Clone(allVerbs), func(v string) bool { return v == "deletecollection" })
	}
	out := []metav1.APIResource{main}
	add := func(sub string, of schema.GroupVersionKind, verbs metav1.Verbs) {
		r := metav1.APIResource{Name: main.Name + "/" + sub, Namespaced: row.Namespaced, Kind: of.Kind, Verbs: verbs}
		if of.GroupVersion() != kind.GroupVersion() {
			r.Group, r.Version = of.Group, of.Version
		}
		out = append(out, r)
	}
	for sub, scope := range k.subs {
		verbs := updateVerbs
		if sub == "finalize" {
			verbs = metav1.Verbs{"update"}
		}
		add(sub, scope.Kind, verbs)
	}
	for sub, o := range k.own {
		add(sub, o.scope.Kind, o.verbs())
	}
	for _, r := range elsewhere[row.Kind] {
		add(r.Name, kind.GroupVersion().WithKind(r.Kind), r.Verbs)
	}
	return out
}

// verbs are what can be done by a subresource.
func (o *ownKind) verbs() metav1.Verbs {
	if o.create != nil {
		return createVerbs
	}
	return updateVerbs
}

// aggregate describes a group with all that is in it.
func (d *discovered) aggregate(g metav1.APIGroup) apidiscoveryv2.APIGroupDiscovery {
	out := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}
	for _, v := range g.Versions {
		gv := schema.GroupVersion{Group: g.Name, Version: v.Version}
		version := apidiscoveryv2.APIVersionDiscovery{Version: v.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
		for _, r := range d.resources[gv] {
			of := &metav1.GroupVersionKind{Group: cmp.Or(r.Group, gv.Group), Version: cmp.Or(r.Version, gv.Version), Kind: r.Kind}
			if _, sub, isSub := strings.Cut(r.Name, "/"); isSub {
				on := &version.Resources[len(version.Resources)-1]
				on.Subresources = append(on.Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: sub, ResponseKind: of, Verbs: r.Verbs})
				continue
			}
			scope := apidiscoveryv2.ScopeCluster
			if r.Namespaced {
				scope = apidiscoveryv2.ScopeNamespace
			}
			version.Resources = append(version.Resources, apidiscoveryv2.APIResourceDiscovery{
				Resource: r.Name, ResponseKind: of, Scope: scope, SingularResource: r.SingularName, Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
			})
		}
		out.Versions = append(out.Versions, version)
	}
	return out
}

// group returns what is said of a group; nil: it isn't served.
func (d *discovered) group(name string) *metav1.APIGroup {
	i := slices.IndexFunc(d.groups, func(g metav1.APIGroup) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return &d.groups[i]
}

// discoveryHandler returns what serves a path of discovery; nil: there is nothing.
func (f *Facade) discoveryHandler(path []string) http.Handler {
	d, codecs := f.discover(), f.types.codecs
	switch {
	case len(path) == 1 && path[0] == "api":
		return f.aggregatedOr(0, d, discovery.NewLegacyRootAPIHandler(discovery.DefaultAddresses{DefaultAddress: serverAddress}, codecs, "/api"))
	case len(path) == 1 && path[0] == "apis":
		return f.aggregatedOr(1, d, f.document(&metav1.APIGroupList{Groups: d.groups[1:]}))
	case len(path) == 2 && path[0] == "apis":
		if g := d.group(path[1]); g != nil && g.Name != "" {
			return discovery.NewAPIGroupHandler(codecs, *g)
		}
		return nil
	case len(path) == 2 && path[0] == "api", len(path) == 3 && path[0] == "apis" && path[1] != "":
		gv := schema.GroupVersion{Version: path[len(path)-1]}
		if len(path) == 3 {
			gv.Group = path[1]
		}
		list := d.resources[gv]
		if list == nil {
			return nil
		}
		return discovery.NewAPIVersionHandler(codecs, gv, discovery.APIResourceListerFunc(func() []metav1.APIResource { return list }))
	}
	return nil
}

// serverAddress is the API's own in the cluster's network.
const serverAddress = "10.0.0.1:8443"

// aggregatedOr serves an aggregated document to who asks for one, and h to others.
func (f *Facade) aggregatedOr(which int, d *discovered, h http.Handler) http.Handler {
	return aggregated.WrapAggregatedDiscoveryToHandler(h, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		codecs := f.discoveries.aggregated
		mediaType, _, err := negotiation.NegotiateOutputMediaType(req, codecs, aggregated.DiscoveryEndpointRestrictions)
		if err != nil || mediaType.Convert == nil {
			f.refuse(w, req, http.StatusNotAcceptable)
			return
		}
		aggregated.ServeHTTPWithETag(d.aggregated[which], d.etags[which], mediaType.Convert.GroupVersion(), codecs, w, req)
	}), nil)
}
