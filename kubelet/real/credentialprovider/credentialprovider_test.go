//go:build linux

package credentialprovider

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	kubeletconfigv1 "k8s.io/kubelet/config/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// files writes files into a new directory, scripts as programs.
func files(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		mode := os.FileMode(0o600)
		if strings.HasPrefix(text, "#!") {
			mode = 0o700
		}
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func providers(names ...string) string {
	text := "kind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/v1\nproviders:\n"
	for _, name := range names {
		text += "- {name: " + name + ", matchImages: [quay.io], defaultCacheDuration: 1m, apiVersion: credentialprovider.kubelet.k8s.io/v1}\n"
	}
	return text
}

func TestLoad(t *testing.T) {
	dir := files(t, map[string]string{
		"bin/a": "#!/bin/sh\n", "bin/b": "#!/bin/sh\n", "bin/c": "#!/bin/sh\n", "bin/plain": "no program",
		"a.yaml": providers("a"), "none.yaml": providers("none"), "plain.yaml": providers("plain"), "bad.yaml": providers("a b"),
		"several/2.yaml": providers("a"), "several/10.yml": providers("b"), "several/3.json": providers("c"), "several/4.conf": "x", "several/sub.yaml/5.yaml": "x",
		"twice/1.yaml": providers("a"), "twice/2.yaml": providers("a"),
		"empty/readme": "x",
	})
	for _, tc := range []struct{ name, config, bin, want string }{
		{"a file", "a.yaml", "bin", "a"},
		{"a directory", "several", "bin", "b a c"},
		{"no programs' directory", "a.yaml", "lib", "plugin binary directory DIR/lib did not exist"},
		{"no programs' directory is said", "a.yaml", "", "plugin binary directory  did not exist"},
		{"no configuration is said", "", "bin", "credential provider config path is empty"},
		{"no configuration", "b.yaml", "bin", `unable to access path "DIR/b.yaml": stat DIR/b.yaml: no such file or directory`},
		{"no files", "empty", "bin", `no configuration files found in directory "DIR/empty"`},
		{"a name twice", "twice", "bin", `duplicate provider name "a" found in configuration file(s)`},
		{"an invalid one", "bad.yaml", "bin", `failed to validate credential provider config: providers.name: Invalid value: "a b": provider name cannot contain spaces`},
		{"no program", "none.yaml", "bin", "plugin binary executable DIR/bin/none did not exist"},
		{"not to be executed", "plain.yaml", "bin", `error inspecting binary executable DIR/bin/plain: exec: "DIR/bin/plain": permission denied`},
	} {
		at := func(name string) string {
			if name == "" {
				return ""
			}
			return filepath.Join(dir, name)
		}
		c, err := Load(at(tc.config), at(tc.bin), nil)
		got := ""
		if err != nil {
			got = strings.ReplaceAll(err.Error(), dir, "DIR")
		} else {
			var names []string
			for _, p := range c.Providers {
				names = append(names, p.Name)
			}
			got = strings.Join(names, " ")
		}
		if got != tc.want {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
}

func TestRun(t *testing.T) {
	current := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, current) })
	dir := files(t, map[string]string{
		"echo":  "#!/bin/sh\necho \"$@\" $FROM_KUBELET $BOTH; cat; echo careful >&2\n",
		"fail":  "#!/bin/sh\necho no network >&2; exit 3\n",
		"hang":  "#!/bin/sh\necho slow >&2; exec sleep 1000\n",
		"leave": "#!/bin/sh\nsleep 5 &\necho said\n",
	})
	t.Setenv("FROM_KUBELET", "kubelet's")
	t.Setenv("BOTH", "kubelet's")
	for _, tc := range []struct{ name, stdout, stderr, err string }{
		{"echo", "a b c kubelet's plugin's\nrequest", "careful\n", ""},
		{"fail", "", "no network\n", "exit status 3"},
		{"hang", "", "", "context deadline exceeded"},
		{"leave", "said\n", "", ""},
		{"gone", "", "", "no such file or directory"},
	} {
		l := loop.NewReal(loop.Options{})
		ctx, done := context.WithTimeout(t.Context(), 20*time.Second)
		l.Root().Go("run", func(ctx context.Context) {
			defer done()
			took := 10 * time.Second
			if tc.name == "hang" {
				took = time.Second
			}
			began := time.Now()
			ctx, cancel := loop.WithTimeout(ctx, took)
			defer cancel()
			stdout, stderr, err := Runner{BinDir: dir}.Run(ctx, &kubeletconfigv1.CredentialProvider{
				Name: tc.name, Args: []string{"a b", "c"}, Env: []kubeletconfigv1.ExecEnvVar{{Name: "BOTH", Value: "plugin's"}},
			}, []byte("request"))
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %v", tc.name, err)
			}
			if time.Since(began) > 4*time.Second {
				t.Errorf("%s: it took %v", tc.name, time.Since(began))
			}
			if string(stdout) != tc.stdout || tc.name != "hang" && string(stderr) != tc.stderr {
				t.Errorf("%s: %q %q", tc.name, stdout, stderr)
			}
		})
		_ = l.RunReal(ctx)
		l.Close()
	}
}
