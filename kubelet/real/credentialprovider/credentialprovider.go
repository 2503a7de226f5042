//go:build linux

// Package credentialprovider runs the image credential provider plugins of the machine
// (--image-credential-provider-config, --image-credential-provider-bin-dir). It mirrors
// what of upstream's pkg/credentialprovider/plugin touches files and processes; what is
// asked of plugins, and when, is in kubelet/credentialprovider/plugin.
package credentialprovider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	kubeletconfigv1 "k8s.io/kubelet/config/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/credentialprovider/plugin"
)

// pipeDelay is how long after the end of a plugin its output is waited for: a process
// that it has left behind may hold it. Upstream waits for good.
const pipeDelay = 2 * time.Second

// Load reads a configuration, a file or a directory of them, and looks for the plugins'
// programs in binDir. gates are those of plugin.NewConfig. It fails where upstream's
// RegisterCredentialProviderPlugins does, in its order: so both paths are needed.
func Load(config, binDir string, gates map[string]bool) (*plugin.Config, error) {
	if _, err := os.Stat(binDir); err != nil {
		if os.IsNotExist(err) {
			return nil, fmt.Errorf("plugin binary directory %s did not exist", binDir)
		}
		return nil, fmt.Errorf("error inspecting binary directory %s: %w", binDir, err)
	}
	files, err := readFiles(config)
	if err != nil {
		return nil, err
	}
	read, hash, err := plugin.Read(files)
	if err != nil {
		return nil, err
	}
	c, err := plugin.NewConfig(read, hash, gates)
	if err != nil {
		return nil, err
	}
	for i := range c.Providers {
		// Upstream's texts, whose path is empty in both.
		bin := filepath.Join(binDir, c.Providers[i].Name)
		if _, err := exec.LookPath(bin); err != nil {
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
				return nil, fmt.Errorf("plugin binary executable %s did not exist", bin)
			}
			return nil, fmt.Errorf("error inspecting binary executable %s: %w", bin, err)
		}
	}
	return c, nil
}

// readFiles reads a file, or those of a directory that are named as YAML or JSON, in
// lexical order.
func readFiles(name string) ([]plugin.File, error) {
	if name == "" {
		return nil, errors.New("credential provider config path is empty")
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("unable to access path %q: %w", name, err)
	}
	names := []string{name}
	if info.IsDir() {
		entries, err := os.ReadDir(name) // sorted
		if err != nil {
			return nil, fmt.Errorf("unable to read directory %q: %w", name, err)
		}
		names = nil
		for _, e := range entries {
			if !e.IsDir() && slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(e.Name())) {
				names = append(names, filepath.Join(name, e.Name()))
			}
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("no configuration files found in directory %q", name)
		}
	}
	var out []plugin.File
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("unable to read file %q: %w", name, err)
		}
		out = append(out, plugin.File{Name: name, Data: data})
	}
	return out, nil
}

// Runner starts plugins as processes. Its method waits in tasks of the kubelet's loop.
type Runner struct {
	// BinDir has the programs.
	BinDir string
}

var _ plugin.Runner = Runner{}

// Run implements plugin.Runner. The program has the kubelet's environment, and over it
// what the configuration says.
func (r Runner) Run(ctx context.Context, p *kubeletconfigv1.CredentialProvider, request []byte) (stdout, stderr []byte, err error) {
	type output struct{ stdout, stderr []byte }
	bin, args := filepath.Join(r.BinDir, p.Name), p.Args
	var env []string
	for _, v := range p.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	out, err := loop.Await(ctx, func(ctx context.Context) (output, error) {
		var stdout, stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, bin, args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(request), &stdout, &stderr
		cmd.Env = append(os.Environ(), env...)
		cmd.WaitDelay = pipeDelay
		err := cmd.Run()
		switch {
		case ctx.Err() != nil:
			err = ctx.Err() // rather than how it was killed
		case errors.Is(err, exec.ErrWaitDelay):
			err = nil // it ended well, and said what it had to
		}
		return output{stdout.Bytes(), stderr.Bytes()}, err
	})
	return out.stdout, out.stderr, err
}
