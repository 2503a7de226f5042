package scenarios

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/scenarios/action"
	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/plugins"
)

var update = flag.Bool("update", false, "write the generated files anew")

// TestGenerated compares schema.json and docs/scenarios.md with what the types
// and their comments say.
func TestGenerated(t *testing.T) {
	g := newGenerator(t)
	g.compare("schema.json", g.schema())
	doc, err := os.ReadFile("../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	doc = g.between(doc, "fields", g.fields())
	doc = g.between(doc, "functions", g.functions())
	doc = g.between(doc, "starter", "```yaml\n"+starter+"```\n")
	pressure, err := os.ReadFile("library/first/under-pressure.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc = g.between(doc, "pressure", "```yaml\n"+string(pressure)+"```\n")
	g.compare("../docs/scenarios.md", doc)
}

// Update reports whether generated files are to be written; for tests of other documents.
func Update() bool { return *update }

// SchemaOf is the JSON Schema of a document's type in a package's directory, for documents
// that other packages have.
func SchemaOf(t *testing.T, root reflect.Type, dir, title, id string) []byte {
	g := newGenerator(t)
	g.read(dir, root.PkgPath(), "*.go", 0)
	return g.document(root, title, id)
}

type generator struct {
	t        *testing.T
	comments map[string]string // "Type" or "Type.Field", by package path + "." in front
	defs     map[string]any
	named    map[string]reflect.Type // whose definition has a name
}

func newGenerator(t *testing.T) *generator {
	g := &generator{t: t, comments: map[string]string{}, defs: map[string]any{}, named: map[string]reflect.Type{}}
	for dir, t := range ourTypes() {
		g.read(dir, t.PkgPath(), "*.go", 0)
	}
	if dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubelet").Output(); err == nil {
		g.read(filepath.Join(strings.TrimSpace(string(dir)), "config/v1beta1"), "k8s.io/kubelet/config/v1beta1", "types*.go", 1)
	} else {
		t.Fatal(err)
	}
	return g
}

// ourTypes has a type of each package whose types documents are made of, by its
// directory.
func ourTypes() map[string]reflect.Type {
	return map[string]reflect.Type{"document": reflect.TypeFor[Scenario](), "action": reflect.TypeFor[action.Apply](), "value": reflect.TypeFor[value.Usage]()}
}

// ours reports whether a type is of those packages.
func ours(t reflect.Type) bool {
	for _, o := range ourTypes() {
		if t.PkgPath() == o.PkgPath() {
			return true
		}
	}
	return false
}

// named is the type that a struct which has another only, and nothing else, is
// documented as: an action that says what others say, too.
func named(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Struct && ours(t) && t.NumField() == 1 && t.Field(0).Anonymous {
		return t.Field(0).Type
	}
	return t
}

// read collects the comments of a package's types; sentences bounds how much
// of each is kept, 0 meaning all.
func (g *generator) read(dir, pkg, pattern string, sentences int) {
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		g.t.Fatalf("no types in %s: %v", dir, err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			g.t.Fatal(err)
		}
		for _, d := range f.Decls {
			gd, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range gd.Specs {
				ts, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				doc := ts.Doc
				if doc == nil {
					doc = gd.Doc
				}
				text, inTimeline, _ := strings.Cut(doc.Text(), "\n\nIn the timeline: ")
				g.comments[pkg+"."+ts.Name.Name] = clean(text, sentences)
				g.comments[pkg+"."+ts.Name.Name+" in the timeline"] = clean(inTimeline, 0)
				st, ok := ts.Type.(*ast.StructType)
				if !ok {
					continue
				}
				for _, f := range st.Fields.List {
					for _, n := range f.Names {
						g.comments[pkg+"."+ts.Name.Name+"."+n.Name] = clean(f.Doc.Text(), sentences)
					}
				}
			}
		}
	}
}

// about describes an action's field in the timeline: by the paragraph that says
// so, or else as its type.
func (g *generator) about(k action.Kind) string {
	t := reflect.TypeOf(k.New()).Elem()
	name := t.PkgPath() + "." + t.Name()
	text := g.comments[name+" in the timeline"]
	if text == "" {
		text = strings.TrimPrefix(g.comments[name], t.Name()+" ")
	}
	if text == "" {
		g.t.Fatalf("%s has no comment", t.Name())
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

var sentence = regexp.MustCompile(`^.*?[.!](\s|$)`)

func clean(s string, sentences int) string {
	var lines []string
	for _, l := range strings.Split(s, "\n") {
		if !strings.HasPrefix(l, "+") {
			lines = append(lines, l)
		}
	}
	s = strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
	if m := sentence.FindString(s); sentences == 1 && m != "" {
		s = strings.TrimSpace(m)
	}
	return s
}

func (g *generator) compare(file string, want []byte) {
	have, _ := os.ReadFile(file)
	if bytes.Equal(have, want) {
		return
	}
	if !*update {
		g.t.Errorf("%s is not what the types say: run go test ./scenarios -run TestGenerated -update", file)
		return
	}
	if err := os.WriteFile(file, want, 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// between replaces what is between two marks of a document.
func (g *generator) between(doc []byte, mark, text string) []byte {
	begin, end := "<!-- "+mark+": generated -->\n", "<!-- end of "+mark+" -->\n"
	i, j := bytes.Index(doc, []byte(begin)), bytes.Index(doc, []byte(end))
	if i < 0 || j < i {
		g.t.Fatalf("the document has no place for %s", mark)
	}
	return bytes.Join([][]byte{doc[:i], []byte(begin), []byte(text), doc[j:]}, nil)
}

type object = map[string]any

func (g *generator) schema() []byte {
	return g.document(reflect.TypeFor[Scenario](), "Drydock scenario", "scenario")
}

// document is the schema of a document of a type.
func (g *generator) document(of reflect.Type, title, id string) []byte {
	root := g.ref(of)
	out := object{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"$id":     "https://drydock.dev/schemas/v1alpha1/" + id + ".json",
		"title":   title,
		"$ref":    root["$ref"],
		"$defs":   g.defs,
	}
	b, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		g.t.Fatal(err)
	}
	return append(b, '\n')
}

// baseName is a type's name without the arguments of a generic one.
func baseName(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

func defName(t reflect.Type) string {
	if _, arg, ok := strings.Cut(t.Name(), "["); ok {
		return baseName(t) + "." + strings.TrimSuffix(arg[strings.LastIndexAny(arg, "./")+1:], "]")
	}
	parts := strings.Split(t.PkgPath(), "/")
	switch p := t.PkgPath(); {
	case strings.HasPrefix(p, "k8s.io/kubelet/"):
		return "kubelet." + t.Name()
	case strings.HasPrefix(p, "k8s.io/"):
		return strings.Join(parts[len(parts)-2:], ".") + "." + t.Name()
	}
	return t.Name()
}

func (g *generator) ref(t reflect.Type) object {
	t = named(t)
	name := defName(t)
	if other := g.named[name]; other != nil && other != t {
		g.t.Fatalf("%v and %v have one name in the schema: rename one", other, t)
	}
	g.named[name] = t
	if _, ok := g.defs[name]; !ok {
		g.defs[name] = nil // so that types may contain themselves
		g.defs[name] = g.define(t)
	}
	return object{"$ref": "#/$defs/" + name}
}

const durationPattern = `([0-9]+(\.[0-9]+)?|\.[0-9]+)(ns|us|µs|ms|s|m|h|d)`

// leaf is the schema of types that are not written as their Go types say.
func (g *generator) leaf(t reflect.Type) any {
	text := object{"type": "string"}
	span := "(" + durationPattern + ")+"
	switch t {
	case reflect.TypeFor[time.Duration]():
		return object{"anyOf": []any{object{"type": "string", "pattern": "^(0|" + span + ")$"}, object{"const": 0}}}
	case reflect.TypeFor[value.Range]():
		return object{"anyOf": []any{object{"type": "string", "pattern": "^(0|" + span + `)(\s*\.\.\s*` + span + ")?$"}, object{"const": 0}}}
	case reflect.TypeFor[value.Time]():
		return object{"anyOf": []any{object{"type": "string", "pattern": "^(end|0|" + span + ")$"}, object{"const": 0}}}
	case reflect.TypeFor[value.Nodes]():
		return object{"anyOf": []any{text, object{"type": "array", "items": text}}}
	case reflect.TypeFor[value.Signal]():
		return object{"type": []string{"string", "integer"}}
	case reflect.TypeFor[value.JSON]():
		return object{"type": []string{"object", "array"}}
	case reflect.TypeFor[value.StaticPods]():
		return object{"type": "object", "additionalProperties": object{"anyOf": []any{text, g.manifestObject()}}}
	case reflect.TypeFor[value.Manifest]():
		return object{"anyOf": []any{text, g.manifestObject(), object{"type": "array", "items": g.manifestObject()}}}
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[resource.QuantityValue]():
		return object{"type": []string{"string", "number"}}
	case reflect.TypeFor[intstr.IntOrString]():
		return object{"type": []string{"string", "integer"}}
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[metav1.Duration]():
		return text
	case reflect.TypeFor[logsapi.TimeOrMetaDuration]():
		return object{"type": []string{"string", "integer"}}
	case reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.FieldsV1]():
		return object{}
	}
	return nil
}

// shorthand is the other way in which a struct may be written.
func (g *generator) shorthand(t reflect.Type) any {
	switch t {
	case reflect.TypeFor[document.KubeletRestart]():
		return object{"const": "never"}
	case reflect.TypeFor[value.Usage]():
		return object{"type": []string{"string", "number"}}
	case reflect.TypeFor[document.DRACapacity]():
		return object{"type": []string{"string", "number"}}
	case reflect.TypeFor[document.LogLine]():
		return object{"type": "string"}
	case reflect.TypeFor[document.Port]():
		return object{"type": "integer", "minimum": 1, "maximum": 65535}
	case reflect.TypeFor[action.CRIError]():
		f, _ := t.FieldByName("Code")
		return object{"enum": strings.Split(f.Tag.Get("enum"), ",")}
	case reflect.TypeFor[action.APIError]():
		return object{"type": "integer"}
	}
	if f, ok := t.FieldByName("Value"); ok && baseName(t) == "Distribution" {
		return g.of(f.Type) // the value alone
	}
	return nil
}

func (g *generator) manifestObject() object {
	const name = "Manifest.object"
	if g.defs[name] == nil {
		kinds := value.ManifestKinds()
		var names, versions []string
		for n, k := range kinds {
			names, versions = append(names, n), append(versions, k.APIVersion)
		}
		sort.Strings(names)
		sort.Strings(versions)
		g.defs[name] = object{}
		var all []any
		for _, n := range names {
			t := reflect.TypeOf(kinds[n].Make()).Elem()
			all = append(all, object{"if": object{"required": []string{"kind"}, "properties": object{"kind": object{"const": n}}}, "then": g.ref(t)})
		}
		all = append(all, object{"if": object{"required": []string{"kind"}, "properties": object{"kind": object{"const": value.ListKind}}},
			"then": object{"properties": object{"items": object{"type": "array", "items": object{"$ref": "#/$defs/" + name}}}}})
		names = append(names, value.ListKind)
		// Of groups that the API doesn't have come custom resources.
		g.defs[name] = object{"type": "object", "description": "A Kubernetes object, or a List of them.", "required": []string{"apiVersion", "kind"},
			"properties": object{"kind": object{"type": "string"}, "apiVersion": object{"type": "string"}},
			"if":         object{"properties": object{"apiVersion": object{"enum": slices.Compact(versions)}}},
			"then":       object{"properties": object{"kind": object{"enum": names}}, "allOf": all},
			"else":       object{"properties": object{"apiVersion": object{"pattern": `^[^/]+\.[^/]+/`}}}}
	}
	return object{"$ref": "#/$defs/" + name}
}

func (g *generator) of(t reflect.Type) object {
	if l := g.leaf(t); l != nil {
		return l.(object)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.of(t.Elem())
	case reflect.Struct:
		if t.Name() == "" {
			return g.define(t)
		}
		return g.ref(t)
	case reflect.Map:
		return object{"type": "object", "additionalProperties": g.of(t.Elem())}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}
		}
		return object{"type": "array", "items": g.of(t.Elem())}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	default:
		return object{"type": "integer"}
	}
}

func (g *generator) define(t reflect.Type) object {
	props, required := object{}, []string{}
	g.properties(t, props, &required)
	out := object{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	if t == reflect.TypeFor[document.Action]() {
		out["minProperties"], out["maxProperties"] = 2, 2
	}
	if s := g.shorthand(t); s != nil {
		out = object{"anyOf": []any{s, out}}
	}
	if c := g.comments[t.PkgPath()+"."+baseName(t)]; c != "" {
		out["description"] = c
	}
	return out
}

func (g *generator) properties(t reflect.Type, props object, required *[]string) {
	var swagger map[string]string
	if d, ok := reflect.New(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		swagger = d.SwaggerDoc()
	}
	for _, f := range jsonFields(t) {
		if f.inline {
			g.properties(f.Type, props, required)
			continue
		}
		p := g.of(f.Type)
		doc := g.comments[t.PkgPath()+"."+baseName(t)+"."+f.Name]
		if doc == "" {
			doc = clean(swagger[f.json], 1)
		}
		if doc != "" {
			p["description"] = doc
		}
		if e := decode.EnumOf(f.StructField); e != nil {
			delete(p, "type")
			p["enum"] = e
		}
		if of, ok := f.Tag.Lookup("keys"); ok {
			methods := map[string][]string{"cri": fakecri.Methods(), "csi": action.CSIMethods(), "csiController": plugins.ControllerMethods()}[of]
			if methods == nil {
				g.t.Fatalf("%s has keys of %q, which nobody knows", f.Name, of)
			}
			p["propertyNames"] = object{"enum": methods}
		}
		if _, ok := f.Tag.Lookup("required"); ok {
			*required = append(*required, f.json)
		}
		props[f.json] = p
	}
	if t == reflect.TypeFor[document.Action]() {
		for _, k := range action.Catalogue() {
			p := g.ref(reflect.TypeOf(k.New()).Elem())
			p["description"] = g.about(k)
			props[k.Name] = p
		}
	}
}

type jsonField struct {
	reflect.StructField
	json   string
	inline bool
}

func jsonFields(t reflect.Type) []jsonField {
	var out []jsonField
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" || strings.Contains(opts, "inline"):
			out = append(out, jsonField{f, "", true})
		case name != "" && name != "-" && f.IsExported():
			out = append(out, jsonField{f, name, false})
		}
	}
	return out
}

// fields is the reference of all fields, one table a type.
func (g *generator) fields() string {
	var b strings.Builder
	seen := map[reflect.Type]bool{}
	var queue []reflect.Type
	add := func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t = named(t); t.Kind() == reflect.Struct && ours(t) && g.leaf(t) == nil && !seen[t] {
			seen[t] = true
			queue = append(queue, t)
		}
	}
	add(reflect.TypeFor[Scenario]())
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		fmt.Fprintf(&b, "### %s\n\n%s\n\n| field | type | |\n|---|---|---|\n", t.Name(), g.comments[t.PkgPath()+"."+t.Name()])
		g.rows(&b, t, add)
		b.WriteString("\n")
	}
	return b.String()
}

func (g *generator) rows(b *strings.Builder, t reflect.Type, add func(reflect.Type)) {
	for _, f := range jsonFields(t) {
		if f.inline {
			add(f.Type)
			g.rows(b, f.Type, add)
			continue
		}
		if l := g.leaf(f.Type); l == nil {
			add(f.Type)
		}
		doc := g.comments[t.PkgPath()+"."+baseName(t)+"."+f.Name]
		if doc == "" {
			g.t.Errorf("%s.%s has no comment", t.Name(), f.Name)
		}
		if _, ok := f.Tag.Lookup("required"); ok {
			doc += " **Must be set.**"
		}
		if e := decode.EnumOf(f.StructField); len(e) > 1 {
			doc += " One of `" + strings.Join(e, "`, `") + "`."
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.json, g.typeText(f.Type), strings.ReplaceAll(doc, "|", "\\|"))
	}
	if t == reflect.TypeFor[document.Action]() {
		for _, k := range action.Catalogue() {
			x := k.New()
			add(reflect.TypeOf(x))
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", k.Name, g.typeText(reflect.TypeOf(x)), g.about(k))
		}
	}
}

// typeText says in words what is written in a field.
func (g *generator) typeText(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "time"
	case reflect.TypeFor[value.Range]():
		return "time or range"
	case reflect.TypeFor[value.Time]():
		return "time or `end`"
	case reflect.TypeFor[value.Nodes]():
		return "text or list of texts"
	case reflect.TypeFor[value.Signal]():
		return "signal"
	case reflect.TypeFor[value.JSON]():
		return "mapping or list"
	case reflect.TypeFor[value.Manifest]():
		return "manifest"
	case reflect.TypeFor[value.StaticPods]():
		return "file name to manifest"
	case reflect.TypeFor[resource.Quantity]():
		return "quantity"
	}
	link := func(t reflect.Type) string { return fmt.Sprintf("[%s](#%s)", t.Name(), strings.ToLower(t.Name())) }
	switch t.Kind() {
	case reflect.Pointer:
		return g.typeText(t.Elem())
	case reflect.Slice:
		return "list of " + g.typeText(t.Elem())
	case reflect.Map:
		return "mapping to " + g.typeText(t.Elem())
	case reflect.Struct:
		if strings.HasPrefix(t.PkgPath(), "k8s.io/") {
			return t.Name()
		}
		return link(named(t))
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "number"
	}
	return "whole number"
}

// functions is the reference of what expressions can call.
func (g *generator) functions() string {
	var b strings.Builder
	b.WriteString("| function | |\n|---|---|\n")
	for _, f := range expect.Functions() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.Signature, f.Doc)
	}
	c, err := expect.NewCompiler()
	if err != nil {
		g.t.Fatal(err)
	}
	b.WriteString("\n")
	for _, name := range []string{"Transition", "ContainerTransition", "NodeTransition", "CRICall", "NodeUsage", "FilesystemUsage", "Cgroup", "ContainerResources", "HTTPAnswer"} {
		fmt.Fprintf(&b, "- `%s` has `%s`.\n", name, strings.Join(c.TypeFields(name), "`, `"))
	}
	return b.String()
}

// TestEveryTypeIsKnown finds types that are written otherwise than their Go
// types say, and that decoding does not know.
func TestEveryTypeIsKnown(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(rt reflect.Type, at string)
	walk = func(rt reflect.Type, at string) {
		for rt.Kind() == reflect.Pointer || rt.Kind() == reflect.Slice || rt.Kind() == reflect.Map {
			rt = rt.Elem()
		}
		if seen[rt] {
			return
		}
		seen[rt] = true
		if _, ok := reflect.New(rt).Interface().(json.Unmarshaler); ok && rt != reflect.TypeFor[value.JSON]() {
			r := decode.NewReader(nil)
			r.Documents("f", []byte("x"))[0].Decode(reflect.New(rt).Interface())
			if err := r.Err(); err != nil && strings.Contains(err.Error(), "want a mapping") {
				t.Errorf("%s: decoding does not know %v", at, rt)
			}
			return
		}
		if rt.Kind() == reflect.Struct {
			for _, f := range jsonFields(rt) {
				walk(f.Type, at+"."+f.json)
			}
		}
	}
	for name, k := range value.ManifestKinds() {
		walk(reflect.TypeOf(k.Make()), name)
	}
	walk(reflect.TypeFor[Scenario](), "Scenario")
	for _, k := range action.Catalogue() {
		walk(reflect.TypeOf(k.New()), k.Name)
	}
}
