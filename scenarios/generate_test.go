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
	"sort"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/drydock-sim/drydock/scenarios/expect"
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

type generator struct {
	t        *testing.T
	comments map[string]string // "Type" or "Type.Field", by package path + "." in front
	defs     map[string]any
}

func newGenerator(t *testing.T) *generator {
	g := &generator{t: t, comments: map[string]string{}, defs: map[string]any{}}
	g.read(".", reflect.TypeFor[Scenario]().PkgPath(), 0)
	if dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubelet").Output(); err == nil {
		g.read(filepath.Join(strings.TrimSpace(string(dir)), "config/v1beta1"), "k8s.io/kubelet/config/v1beta1", 1)
	} else {
		t.Fatal(err)
	}
	return g
}

// read collects the comments of a package's types; sentences bounds how much
// of each is kept, 0 meaning all.
func (g *generator) read(dir, pkg string, sentences int) {
	files, err := filepath.Glob(filepath.Join(dir, "types*.go"))
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
				g.comments[pkg+"."+ts.Name.Name] = clean(doc.Text(), sentences)
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
	root := g.ref(reflect.TypeFor[Scenario]())
	out := object{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"$id":     "https://drydock.dev/schemas/v1alpha1/scenario.json",
		"title":   "Drydock scenario",
		"$ref":    root["$ref"],
		"$defs":   g.defs,
	}
	b, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		g.t.Fatal(err)
	}
	return append(b, '\n')
}

func defName(t reflect.Type) string {
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
	name := defName(t)
	if _, ok := g.defs[name]; !ok {
		g.defs[name] = nil // so that types may contain themselves
		g.defs[name] = g.define(t)
	}
	return object{"$ref": "#/$defs/" + name}
}

const durationPattern = `([0-9]+(\.[0-9]+)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)`

// leaf is the schema of types that are not written as their Go types say.
func (g *generator) leaf(t reflect.Type) any {
	text := object{"type": "string"}
	span := "(" + durationPattern + ")+"
	switch t {
	case reflect.TypeFor[time.Duration]():
		return object{"anyOf": []any{object{"type": "string", "pattern": "^(0|" + span + ")$"}, object{"const": 0}}}
	case reflect.TypeFor[Range]():
		return object{"anyOf": []any{object{"type": "string", "pattern": "^(0|" + span + `)(\s*\.\.\s*` + span + ")?$"}, object{"const": 0}}}
	case reflect.TypeFor[Time]():
		return object{"anyOf": []any{object{"type": "string", "pattern": "^(end|0|" + span + ")$"}, object{"const": 0}}}
	case reflect.TypeFor[Nodes]():
		return object{"anyOf": []any{text, object{"type": "array", "items": text}}}
	case reflect.TypeFor[Signal]():
		return object{"type": []string{"string", "integer"}}
	case reflect.TypeFor[JSON]():
		return object{"type": []string{"object", "array"}}
	case reflect.TypeFor[StaticPods]():
		return object{"type": "object", "additionalProperties": object{"anyOf": []any{text, g.manifestObject()}}}
	case reflect.TypeFor[Manifest]():
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
	case reflect.TypeFor[KubeletRestart]():
		return object{"const": "never"}
	case reflect.TypeFor[Usage]():
		return object{"type": []string{"string", "number"}}
	case reflect.TypeFor[LogLine]():
		return object{"type": "string"}
	case reflect.TypeFor[Port]():
		return object{"type": "integer", "minimum": 1, "maximum": 65535}
	case reflect.TypeFor[CRIError]():
		f, _ := t.FieldByName("Code")
		return object{"enum": strings.Split(f.Tag.Get("enum"), ",")}
	case reflect.TypeFor[APIError]():
		return object{"type": "integer"}
	}
	return nil
}

func (g *generator) manifestObject() object {
	const name = "Manifest.object"
	if g.defs[name] == nil {
		kinds := manifestKinds()
		var names, versions []string
		for n, k := range kinds {
			names, versions = append(names, n), append(versions, k.apiVersion)
		}
		sort.Strings(names)
		sort.Strings(versions)
		g.defs[name] = object{}
		var all []any
		for _, n := range names {
			t := reflect.TypeOf(kinds[n].make()).Elem()
			all = append(all, object{"if": object{"required": []string{"kind"}, "properties": object{"kind": object{"const": n}}}, "then": g.ref(t)})
		}
		all = append(all, object{"if": object{"required": []string{"kind"}, "properties": object{"kind": object{"const": listKind}}},
			"then": object{"properties": object{"items": object{"type": "array", "items": object{"$ref": "#/$defs/" + name}}}}})
		names = append(names, listKind)
		g.defs[name] = object{"type": "object", "description": "A Kubernetes object, or a List of them.", "required": []string{"apiVersion", "kind"},
			"properties": object{"kind": object{"enum": names}, "apiVersion": object{"type": "string"}}, "allOf": all}
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
	if t == reflect.TypeFor[Action]() {
		out["minProperties"], out["maxProperties"] = 2, 2
	}
	if s := g.shorthand(t); s != nil {
		out = object{"anyOf": []any{s, out}}
	}
	if c := g.comments[t.PkgPath()+"."+t.Name()]; c != "" {
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
		doc := g.comments[t.PkgPath()+"."+t.Name()+"."+f.Name]
		if doc == "" {
			doc = clean(swagger[f.json], 1)
		}
		if doc != "" {
			p["description"] = doc
		}
		if e := f.Tag.Get("enum"); e != "" {
			delete(p, "type")
			p["enum"] = strings.Split(e, ",")
		}
		if _, ok := f.Tag.Lookup("keys"); ok {
			p["propertyNames"] = object{"enum": criMethods()}
		}
		if _, ok := f.Tag.Lookup("required"); ok {
			*required = append(*required, f.json)
		}
		props[f.json] = p
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
		if t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[Scenario]().PkgPath() && g.leaf(t) == nil && !seen[t] {
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
		doc := g.comments[t.PkgPath()+"."+t.Name()+"."+f.Name]
		if doc == "" {
			g.t.Errorf("%s.%s has no comment", t.Name(), f.Name)
		}
		if _, ok := f.Tag.Lookup("required"); ok {
			doc += " **Must be set.**"
		}
		if e := f.Tag.Get("enum"); strings.Contains(e, ",") {
			doc += " One of `" + strings.ReplaceAll(e, ",", "`, `") + "`."
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.json, g.typeText(f.Type), strings.ReplaceAll(doc, "|", "\\|"))
	}
}

// typeText says in words what is written in a field.
func (g *generator) typeText(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "time"
	case reflect.TypeFor[Range]():
		return "time or range"
	case reflect.TypeFor[Time]():
		return "time or `end`"
	case reflect.TypeFor[Nodes]():
		return "text or list of texts"
	case reflect.TypeFor[Signal]():
		return "signal"
	case reflect.TypeFor[JSON]():
		return "mapping or list"
	case reflect.TypeFor[Manifest]():
		return "manifest"
	case reflect.TypeFor[StaticPods]():
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
		return link(t)
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
	for _, name := range []string{"Transition", "ContainerTransition", "NodeTransition", "CRICall", "NodeUsage", "FilesystemUsage", "Cgroup", "ContainerResources"} {
		fmt.Fprintf(&b, "- `%s` has `%s`.\n", name, strings.Join(c.TypeFields(name), "`, `"))
	}
	return b.String()
}
