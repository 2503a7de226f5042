package facade

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"github.com/munnerz/goautoneg"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/handler3"

	"github.com/drydock-sim/drydock/sim/facade/internal/openapi"
)

// openAPI serves the documents of OpenAPI. They are made when they are first asked for,
// and anew when what is served has changed.
type openAPI struct {
	f  *Facade
	mu sync.Mutex

	definitions *openapi.Definitions // nil: not read yet
	of          *discovered          // what the documents are of
	v3          map[string]*document // by path: "apis/apps/v1"
	v2          *document            // nil: not made yet
}

// document is one document, in all forms that it is served in.
type document struct {
	json []byte
	hash string
	made time.Time // of the cluster's
	// proto is the document in protobuf, made by toProto when it is first asked for.
	proto   []byte
	toProto func([]byte) ([]byte, error)
}

func newDocument(data []byte, made time.Time, toProto func([]byte) ([]byte, error)) *document {
	return &document{json: data, hash: fmt.Sprintf("%X", sha512.Sum512(data)), made: made, toProto: toProto}
}

// form is a media type in which a document is served.
type form struct {
	accepted []string // subtypes of application
	sent     string
	proto    bool
}

// The forms of documents (k8s.io/kube-openapi, pkg/handler and pkg/handler3).
var (
	formsV2 = []form{{[]string{"json"}, "application/json", false},
		{[]string{"com.github.proto-openapi.spec.v2.v1.0+protobuf", "com.github.proto-openapi.spec.v2@v1.0+protobuf"}, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", true}}
	formsV3 = []form{{[]string{"json"}, "application/json", false},
		{[]string{"com.github.proto-openapi.spec.v3.v1.0+protobuf", "com.github.proto-openapi.spec.v3@v1.0+protobuf"}, "application/com.github.proto-openapi.spec.v3.v1.0+protobuf", true}}
)

// acceptable returns the form that a request prefers; nil: none.
func acceptable(req *http.Request, forms []form) *form {
	accept := req.Header.Get("Accept")
	if accept == "" {
		accept = "*/*"
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		for i := range forms {
			if (clause.Type == "application" || clause.Type == "*") && (clause.SubType == "*" || slices.Contains(forms[i].accepted, clause.SubType)) {
				return &forms[i]
			}
		}
	}
	return nil
}

// versions are what is served, a version each, in the order of discovery.
func (o *openAPI) versions(d *discovered) []*openapi.Version {
	kinds, _ := o.f.kinds.all()
	var out []*openapi.Version
	for _, g := range d.groups {
		for _, gv := range g.Versions {
			v := &openapi.Version{}
			v.Group, v.Version = g.Name, gv.Version
			v.Resources = d.resources[v.GroupVersion]
			for _, k := range kinds {
				if k.definition != nil && k.scope.Kind.GroupVersion() == v.GroupVersion {
					v.Custom = append(v.Custom, k.definition)
				}
			}
			out = append(out, v)
		}
	}
	return out
}

// current has the documents be of what is served now. The caller holds the lock.
func (o *openAPI) current() (*discovered, error) {
	d := o.f.discover()
	if o.of == d {
		return d, nil
	}
	if o.definitions == nil {
		var err error
		if o.definitions, err = openapi.Load(); err != nil {
			return nil, err
		}
	}
	was := o.v3
	o.v3, o.v2 = map[string]*document{}, nil
	for _, v := range o.versions(d) {
		data, err := o.definitions.V3(v, serverVersion.GitVersion)
		if err != nil {
			return nil, err
		}
		doc := newDocument(data, o.f.clock.now(), handler3.ToV3ProtoBinary)
		if old := was[v.Path()]; old != nil && old.hash == doc.hash {
			doc = old
		}
		o.v3[v.Path()] = doc
	}
	o.of = d
	return d, nil
}

// serve serves the documents; the path begins with /openapi/.
func (o *openAPI) serve(w http.ResponseWriter, req *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d, err := o.current()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	path := strings.TrimPrefix(req.URL.Path, "/openapi/")
	switch {
	case path == "v2":
		if o.v2 == nil {
			data, err := o.definitions.V2(o.versions(d), serverVersion.GitVersion)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			o.v2 = newDocument(data, o.f.clock.now(), v2ToProto)
		}
		o.v2.serve(w, req, formsV2)
	case path == "v3" || path == "v3/":
		o.serveIndex(w, req)
	case o.v3[strings.TrimPrefix(path, "v3/")] != nil:
		path = strings.TrimPrefix(path, "v3/")
		doc := o.v3[path]
		if hash := req.URL.Query().Get("hash"); hash != "" {
			if hash != doc.hash {
				http.Redirect(w, req, documentURL(path, doc.hash), http.StatusMovedPermanently)
				return
			}
			w.Header().Set("Cache-Control", "public, immutable")
			w.Header().Set("Expires", o.f.clock.now().AddDate(1, 0, 0).Format(time.RFC1123))
		}
		doc.serve(w, req, formsV3)
	default:
		http.NotFound(w, req)
	}
}

// documentURL is where a document is that never changes.
func documentURL(path, hash string) string { return "/openapi/v3/" + path + "?hash=" + hash }

// serveIndex lists the documents of version 3.
func (o *openAPI) serveIndex(w http.ResponseWriter, req *http.Request) {
	type at struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	}
	paths := map[string]at{}
	for path, doc := range o.v3 {
		paths[path] = at{documentURL(path, doc.hash)}
	}
	data, err := json.Marshal(map[string]any{"paths": paths})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	newDocument(data, o.f.clock.now(), nil).serve(w, req, formsV3[:1])
}

// serve serves a document in the form that is asked for, unless the client has it.
func (d *document) serve(w http.ResponseWriter, req *http.Request, forms []form) {
	w.Header().Add("Vary", "Accept")
	as := acceptable(req, forms)
	if as == nil {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	data := d.json
	if as.proto {
		if d.proto == nil {
			var err error
			if d.proto, err = d.toProto(d.json); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		data = d.proto
	}
	w.Header().Set("Content-Type", as.sent)
	w.Header().Set("Etag", strconv.Quote(d.hash))
	http.ServeContent(w, req, "", d.made, bytes.NewReader(data))
}

// v2ToProto is a document of OpenAPI 2 in protobuf.
func v2ToProto(data []byte) ([]byte, error) {
	doc, err := openapi_v2.ParseDocument(data)
	if err != nil {
		return nil, fmt.Errorf("openapi v2: %w", err)
	}
	return proto.Marshal(doc)
}
