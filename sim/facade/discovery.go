package facade

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// serveDiscovery answers what is served.
func (f *Facade) serveDiscovery(w http.ResponseWriter, req *http.Request) {
	path := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	obj := f.discovery(path)
	switch version := path[0] == "api" && len(path) > 1 || path[0] == "apis" && len(path) > 2; {
	case obj == nil && version:
		f.refuse(w, req, http.StatusNotFound)
		return
	case obj == nil:
		http.NotFound(w, req)
		return
	case req.Method != http.MethodGet:
		f.refuse(w, req, http.StatusMethodNotAllowed)
		return
	}
	responsewriters.WriteObjectNegotiated(f.types.codecs, negotiation.DefaultEndpointRestrictions, schema.GroupVersion{Version: "v1"}, w, req, http.StatusOK, obj, false)
}

// discovery is the document of a path; nil: there is none.
func (f *Facade) discovery(path []string) runtime.Object {
	switch {
	case len(path) == 1 && path[0] == "api":
		return &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case len(path) == 1 && path[0] == "apis":
		list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, group := range f.groups() {
			list.Groups = append(list.Groups, f.group(group))
		}
		return list
	case len(path) == 2 && path[0] == "api":
		return f.resources(schema.GroupVersion{Version: path[1]})
	case len(path) == 2 && path[0] == "apis":
		group := f.group(path[1])
		if len(group.Versions) == 0 {
			return nil
		}
		group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		return &group
	case len(path) == 3 && path[0] == "apis":
		return f.resources(schema.GroupVersion{Group: path[1], Version: path[2]})
	}
	return nil
}

// groups are the named groups that are served, in the order of the kinds.
func (f *Facade) groups() []string {
	var out []string
	seen := map[string]bool{"": true}
	for _, k := range f.kinds.all() {
		if g := k.scope.Kind.Group; !seen[g] {
			seen[g] = true
			out = append(out, g)
		}
	}
	return out
}

// group is what is said of a group.
func (f *Facade) group(name string) metav1.APIGroup {
	g := metav1.APIGroup{Name: name}
	seen := map[string]bool{}
	for _, k := range f.kinds.all() {
		if gv := k.scope.Kind.GroupVersion(); gv.Group == name && !seen[gv.Version] {
			seen[gv.Version] = true
			g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version})
		}
	}
	if len(g.Versions) > 0 {
		g.PreferredVersion = g.Versions[0]
	}
	return g
}

// resources are those of a version; nil: it has none.
func (f *Facade) resources(gv schema.GroupVersion) runtime.Object {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for _, k := range f.kinds.all() {
		if k.scope.Kind.GroupVersion() != gv {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: k.row.Resource, SingularName: strings.ToLower(k.scope.Kind.Kind), Namespaced: k.row.Namespaced, Kind: k.scope.Kind.Kind,
			Verbs: metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		})
	}
	if len(list.APIResources) == 0 {
		return nil
	}
	return list
}
