// The program gen makes definitions.json.gz, the OpenAPI definitions of the built-in
// kinds' types: kube-openapi's generator reads their sources and writes code, and that
// code, run once, the definitions. So the types' texts, which are most of it, take a
// tenth of what the code would take in a binary.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// packages have the types of what is served, and those that they are made of.
var packages = []string{
	"k8s.io/api/admissionregistration/v1", "k8s.io/api/apps/v1", "k8s.io/api/authentication/v1", "k8s.io/api/authorization/v1",
	"k8s.io/api/autoscaling/v1", "k8s.io/api/autoscaling/v2", "k8s.io/api/batch/v1", "k8s.io/api/certificates/v1", "k8s.io/api/coordination/v1",
	"k8s.io/api/core/v1", "k8s.io/api/discovery/v1", "k8s.io/api/events/v1", "k8s.io/api/flowcontrol/v1", "k8s.io/api/networking/v1",
	"k8s.io/api/node/v1", "k8s.io/api/policy/v1", "k8s.io/api/rbac/v1", "k8s.io/api/resource/v1", "k8s.io/api/scheduling/v1",
	"k8s.io/api/storage/v1", "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1", "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
	"k8s.io/apimachinery/pkg/api/resource", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/runtime",
	"k8s.io/apimachinery/pkg/util/intstr", "k8s.io/apimachinery/pkg/version", "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1",
}

// program prints the definitions as version 3 of OpenAPI has them. The schemes say which
// kinds types are.
const program = `package main

import (
	"encoding/json"
	"os"

%s
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/drydock-sim/drydock/sim/facade/internal/openapi/gen/generated/definitions"
)

func main() {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{%s} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	config := &common.OpenAPIV3Config{
		Info: &spec.Info{}, GetDefinitions: definitions.GetOpenAPIDefinitions,
		GetDefinitionName: openapi.NewDefinitionNamer(s).GetDefinitionName,
	}
	var names []string
	for name := range definitions.GetOpenAPIDefinitions(func(string) spec.Ref { return spec.Ref{} }) {
		names = append(names, name)
	}
	out, err := builder3.BuildOpenAPIDefinitionsForResources(config, names...)
	if err != nil {
		panic(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		panic(err)
	}
}
`

func main() {
	log.SetFlags(0)
	if err := generate(); err != nil {
		log.Fatal("gen: ", err)
	}
}

// generate works in the directory of the package above.
func generate() error {
	version, err := run("go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kube-openapi")
	if err != nil {
		return err
	}
	code := filepath.Join("gen", "generated")
	defer os.RemoveAll(code)
	if err := os.MkdirAll(filepath.Join(code, "definitions"), 0o755); err != nil {
		return fmt.Errorf("make %s: %w", code, err)
	}
	args := []string{"run", "k8s.io/kube-openapi/cmd/openapi-gen@" + strings.TrimSpace(string(version)),
		"--output-dir", filepath.Join(code, "definitions"), "--output-pkg", "definitions", "--output-file", "definitions.go",
		"--report-filename", os.DevNull, "--go-header-file", os.DevNull}
	if _, err := run("go", append(args, packages...)...); err != nil {
		return err
	}
	var imports, schemes strings.Builder
	for i, p := range packages {
		if strings.HasPrefix(p, "k8s.io/apimachinery/") {
			continue // has no kinds of its own
		}
		fmt.Fprintf(&imports, "\tp%d %q\n", i, p)
		fmt.Fprintf(&schemes, "p%d.AddToScheme, ", i)
	}
	main := fmt.Sprintf(program, imports.String(), schemes.String())
	if err := os.WriteFile(filepath.Join(code, "main.go"), []byte(main), 0o644); err != nil {
		return fmt.Errorf("write the program: %w", err)
	}
	definitions, err := run("go", "run", "./"+filepath.ToSlash(code))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	if _, err := z.Write(definitions); err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	if err := os.WriteFile("definitions.json.gz", out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// run returns what a command prints.
func run(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return out, nil
}
