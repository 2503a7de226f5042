package drydocktest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// object is an object as it stands in a file.
type object struct {
	file, kind, name string
	json             []byte
}

func (o *object) isDefinition() bool { return o.kind == string(apiserver.KindCustomResourceDefinition) }

// readObjects reads the objects of files and directories, in the order in which they stand
// there. field is that of Options which names them.
func readObjects(field string, paths []string) (out []object, err error) {
	for _, path := range paths {
		err := filepath.WalkDir(path, func(file string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if e.IsDir() || file != path && !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)) {
				return nil
			}
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			list, err := parseObjects(file, data)
			out = append(out, list...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("Options.%s: %w", field, err)
		}
	}
	return out, nil
}

// readDefinitions reads the definitions of files and directories; what else is in them is
// passed over, as envtest does.
func readDefinitions(paths []string) (out []object, err error) {
	for _, path := range paths {
		list, err := readObjects("CRDs", []string{path})
		if err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(o object) bool { return !o.isDefinition() })
		if len(list) == 0 {
			return nil, fmt.Errorf("Options.CRDs: %s has no CustomResourceDefinition", path)
		}
		out = append(out, list...)
	}
	return out, nil
}

// parseObjects reads the objects of a file.
func parseObjects(file string, data []byte) (out []object, err error) {
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var raw json.RawMessage
		if err := docs.Decode(&raw); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		var head struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if head.Kind != "" { // an empty document
			out = append(out, object{file, head.Kind, head.Metadata.Name, raw})
		}
	}
}

// apply has objects be made, as kubectl apply does.
func (c *Cluster) apply(list []object) error {
	for _, o := range list {
		if err := c.act(fmt.Sprintf("{apply: {manifest: %s}}", o.json)); err != nil {
			return fmt.Errorf("%s: %w", o.file, err)
		}
	}
	return nil
}

// established returns an error unless all definitions of these names are served.
func (c *Cluster) established(names []string) (err error) {
	if perr := c.between(func() {
		for _, name := range names {
			obj := c.session.Cluster().Store().Lookup(apiserver.KindCustomResourceDefinition, "", name)
			def, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
			if !ok || !slices.ContainsFunc(def.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			}) {
				err = errors.Join(err, fmt.Errorf("the definition %s is not established: %s", name, whyNot(def)))
			}
		}
	}); perr != nil {
		return perr
	}
	return err
}

// whyNot is what the API says of a definition that it doesn't serve.
func whyNot(def *apiextensionsv1.CustomResourceDefinition) string {
	if def == nil {
		return "it is not there"
	}
	for _, cond := range def.Status.Conditions {
		if cond.Status != apiextensionsv1.ConditionTrue && cond.Message != "" {
			return cond.Message
		}
	}
	return "no reason is given"
}
