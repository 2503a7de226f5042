package images

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/images.md anew")

const document = "../../../docs/images.md"

// TestDocument: the page of the documents is what the catalogue says.
func TestDocument(t *testing.T) {
	old, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := []byte("<!-- catalogue: generated -->\n"), []byte("<!-- end of catalogue -->")
	i, j := bytes.Index(old, begin), bytes.Index(old, end)
	if i < 0 || j < i {
		t.Fatal("the page has lost its marks")
	}
	made := slices.Concat(old[:i], begin, []byte(table(newCatalogue())), old[j:])
	if *update {
		if err := os.WriteFile(document, made, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(old, made) {
		t.Error("docs/images.md is not what the catalogue says: go test ./fakecri/internal/images -run TestDocument -update")
	}
}

// table has a row for each image, and one for each group.
func table(c *catalogue) string {
	var b strings.Builder
	b.WriteString("| image | listens on | unless said by | after | ends | answers | tools | assumed |\n|---|---|---|---|---|---|---|---|\n")
	groups := map[string][]string{}
	var order []string
	for i, k := range c.all() {
		name := strings.Replace(c.names[i], ".", "/", 1)
		if strings.HasSuffix(name, "+") {
			name = strings.TrimSuffix(name, "+") + "..."
		}
		if k.Group != "" {
			if groups[k.Group] == nil {
				order = append(order, k.Group)
			}
			groups[k.Group] = append(groups[k.Group], name)
			continue
		}
		b.WriteString("| " + name + " | " + strings.Join(row(k), " | ") + " |\n")
	}
	b.WriteString("\n| others | |\n|---|---|\n")
	slices.Sort(order)
	for _, g := range order {
		b.WriteString("| " + g + " | " + strings.Join(groups[g], ", ") + " |\n")
	}
	return b.String()
}

func row(k *knownImage) []string {
	var ports, said, answers, tools []string
	add := func(to *[]string, v string) {
		if !slices.Contains(*to, v) {
			*to = append(*to, v)
		}
	}
	after, ends := "", ""
	if s := k.Server; s != nil {
		after, ends = "at once", fmt.Sprint(s.Stop.Exit)
		if s.Ready > 0 {
			after = time.Duration(s.Ready).String()
		}
		if s.Stop.After > 0 {
			ends += " after " + time.Duration(s.Stop.After).String()
		}
		for i := range s.Ports {
			p := &s.Ports[i]
			if p.Port > 0 && p.When == "" {
				add(&ports, fmt.Sprint(p.Port))
			}
			for _, n := range p.Also {
				add(&ports, fmt.Sprint(n))
			}
			for _, src := range p.From {
				for _, f := range src.Flag {
					add(&said, "`"+f+"`")
				}
				for _, e := range src.Env {
					add(&said, e)
				}
				for _, f := range src.Files {
					switch {
					case f[0] == '/':
						add(&said, path.Base(f))
					case f == "1":
						add(&said, "the file of its first argument")
					}
				}
				if src.Templates != "" {
					add(&said, "*.template")
				}
				if src.Line {
					add(&said, "arguments")
				}
			}
			for _, a := range p.HTTP {
				text := "`" + a.Path + "`"
				if a.Path == "" {
					text = "all"
				}
				if a.Status != 0 {
					text += fmt.Sprintf(" %d", a.Status)
				}
				add(&answers, text)
			}
			for _, a := range p.Talks {
				add(&answers, "`"+a.Ask+"`")
			}
			if !p.Raw && len(p.HTTP) == 0 && s.Root == "" && len(s.Ports) > 0 {
				add(&answers, "all")
			}
		}
		if s.Root != "" {
			add(&answers, "files of "+s.Root)
		}
		for _, f := range s.PageFlag {
			add(&said, "page: `"+f+"`")
		}
		for _, n := range s.Needs {
			if len(n.Env) > 0 {
				add(&said, "needs one of "+n.Env[0]+", ...")
			} else {
				add(&said, "needs its configuration")
			}
		}
	}
	for i := range k.Tools {
		t := &k.Tools[i]
		add(&tools, strings.TrimSpace(t.Commands[0]+" "+strings.Trim(t.Args, "*")))
	}
	return []string{strings.Join(ports, ", "), strings.Join(said, ", "), after, ends, strings.Join(answers, ", "), strings.Join(tools, ", "), k.Assumes}
}
