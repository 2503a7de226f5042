package scenarios

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/drydock-sim/drydock/scenarios/document"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
)

// Load reads a file of one or more scenarios. What is wrong comes back as
// LoadErrors, all of it at once.
func Load(file string, opts LoadOptions) ([]*Scenario, error) {
	opts = fromDisk(opts)
	data, err := opts.ReadFile(file)
	if err != nil {
		return nil, LoadErrors{{Message: decode.OneLine(fmt.Sprintf("cannot read the scenario: %v", err))}}
	}
	return Parse(file, data, opts)
}

// Parse is Load for a scenario's text; files that it names are relative to
// that of the given name.
func Parse(file string, data []byte, opts LoadOptions) ([]*Scenario, error) {
	opts = fromDisk(opts)
	return document.Parse(file, data, opts)
}

// DecodeDocument decodes the only document of a file, of a kind other than
// Scenario, into a struct by its json tags, as strictly as a scenario. What is
// wrong is collected; Document.Err has it. It returns nil and LoadErrors when
// there is nothing to go on with.
func DecodeDocument(file string, data []byte, apiVersion, kind string, into any) (*Document, error) {
	return document.DecodeOther(file, data, ReadFile, apiVersion, kind, into)
}

// fromDisk completes options that say nothing of files.
func fromDisk(opts LoadOptions) LoadOptions {
	if opts.ReadFile == nil {
		opts.ReadFile = ReadFile
		if opts.ReadDir == nil {
			opts.ReadDir = ReadDir
		}
	}
	return opts
}

// ReadDir returns the manifests in a directory, as kubectl apply -f takes them: files whose
// names end in .yaml, .yml or .json, by name, and nothing of directories below.
func ReadDir(name string) ([]string, error) {
	if st, err := os.Stat(name); err != nil || !st.IsDir() {
		return nil, nil // reading the file says what is wrong
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, e := range entries {
		// What is no manifest yet is nothing that kubectl apply -f could take, either.
		switch e.Name() {
		case "Chart.yaml":
			return nil, fmt.Errorf("%s is a Helm chart: apply what `helm template %s` prints (a file of it, or - for standard input)", name, name)
		case "kustomization.yaml", "kustomization.yml", "Kustomization":
			return nil, fmt.Errorf("%s is a kustomization: apply what `kubectl kustomize %s` prints (a file of it, or - for standard input)", name, name)
		}
		switch filepath.Ext(e.Name()) {
		case ".yaml", ".yml", ".json":
			if !e.IsDir() {
				out = append(out, filepath.Join(name, e.Name()))
			}
		}
	}
	return out, nil
}

// maxFile bounds the size of the files that are read.
const maxFile = 32 << 20

// ReadFile is os.ReadFile that gives up on what is larger than 32 MiB, or without
// end; "-" is standard input, which can be read once.
func ReadFile(name string) ([]byte, error) {
	f := os.Stdin
	if name != "-" {
		var err error
		if f, err = os.Open(name); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %d MiB", name, maxFile>>20)
	}
	return data, err
}
