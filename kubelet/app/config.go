//go:build linux

package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	kubeletcfg "github.com/drydock-sim/drydock/kubelet/apis/config"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
)

// NewConfiguration returns what a kubelet without a configuration file starts
// from: v1beta1's defaults but for those that flags have had of old, and no hard
// eviction thresholds.
// Flags predate configuration files, and their defaults are laxer: anonymous
// requests, no authorization, a read-only port. Upstream keeps them
// (cmd/kubelet/app/options, applyLegacyDefaults). Help shows these as the flags' defaults.
func NewConfiguration() *kubeletconfig.KubeletConfiguration {
	c := &kubeletconfig.KubeletConfiguration{}
	kubeletcfg.SetBaseDefaults(c)
	*c.Authentication.Anonymous.Enabled = true
	*c.Authentication.Webhook.Enabled = false
	c.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeAlwaysAllow
	c.ReadOnlyPort = 10255
	return c
}

// codecs decode the group's kinds. Strict ones refuse unknown and duplicate
// fields. A factory is made for each reading: there are two or three at a start.
func codecs(strict bool) (serializer.CodecFactory, error) {
	scheme := runtime.NewScheme()
	if err := kubeletconfig.AddToScheme(scheme); err != nil {
		return serializer.CodecFactory{}, err
	}
	if strict {
		return serializer.NewCodecFactory(scheme, serializer.EnableStrict), nil
	}
	return serializer.NewCodecFactory(scheme, serializer.DisableStrict), nil
}

// Decode reads a configuration, YAML or JSON, and sets its defaults. A strict
// reading comes first; if only that fails, lenient is its error and the
// configuration what a lenient one gives. Some defaults depend on feature gates:
// those of the configuration, and else those of gates.
// Upstream does the same: a configuration for another version, with fields that
// this one doesn't know, must not keep the node down. gvk is of what was read, for the error.
func Decode(data []byte, gates map[string]bool) (c *kubeletconfig.KubeletConfiguration, lenient, err error) {
	factory, err := codecs(true)
	if err != nil {
		return nil, nil, err
	}
	obj, gvk, err := factory.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		if !runtime.IsStrictDecodingError(err) {
			return nil, nil, fmt.Errorf("failed to decode: %w", err)
		}
		lenient = err
		if factory, err = codecs(false); err != nil {
			return nil, nil, err
		}
		if obj, gvk, err = factory.UniversalDeserializer().Decode(data, nil, nil); err != nil {
			return nil, nil, fmt.Errorf("failed lenient decoding: %w", lenient)
		}
	}
	c, ok := obj.(*kubeletconfig.KubeletConfiguration)
	if !ok {
		return nil, nil, fmt.Errorf("failed to cast object to KubeletConfiguration, unexpected type: %v", gvk)
	}
	if err := setDefaults(c, gates); err != nil {
		return nil, nil, fmt.Errorf("failed to decode: %w", err) // upstream panics
	}
	return c, lenient, nil
}

// setDefaults completes a configuration that was read.
// Gates of the command line count for the defaults, but are not the file's:
// they are laid over it again later. The type's own kind and version are emptied, since
// upstream's internal type has none.
func setDefaults(c *kubeletconfig.KubeletConfiguration, gates map[string]bool) error {
	c.TypeMeta = metav1.TypeMeta{}
	own := c.FeatureGates
	all := maps.Clone(gates)
	if all == nil {
		all = map[string]bool{}
	}
	maps.Copy(all, own)
	if _, err := features.Resolve(all); err != nil {
		return err
	}
	c.FeatureGates = all
	kubeletcfg.SetBaseDefaults(c)
	c.FeatureGates = own
	return nil
}

// LoadFile reads the configuration file of --config: with defaults, hard
// eviction thresholds among them, and paths relative to the file's directory
// resolved. What a strict reading says of it goes to warn. For gates see Decode.
// Hard eviction thresholds have defaults in a file only: flags have had none of
// old. The errors' texts are upstream's, nested as there.
func LoadFile(name string, gates map[string]bool, warn func(error)) (*kubeletconfig.KubeletConfiguration, error) {
	c, err := loadFile(name, gates, warn)
	if err != nil {
		return nil, fmt.Errorf("failed to load Kubelet config file %s, error %w", name, err)
	}
	return c, nil
}

// loadFile is LoadFile without the file's name in its errors.
func loadFile(name string, gates map[string]bool, warn func(error)) (*kubeletconfig.KubeletConfiguration, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	data, err := readFile(abs, "kubelet")
	if err != nil {
		return nil, err
	}
	c, lenient, err := Decode(data, gates)
	if err != nil {
		return nil, err
	}
	if lenient != nil {
		warn(lenient)
	}
	resolvePaths(c, filepath.Dir(abs))
	kubeletcfg.SetEvictionDefaults(c)
	return c, nil
}

// maxConfig bounds a configuration file in bytes; one that is longer is a
// mistake.
const maxConfig = 3 << 20

// readFile reads a configuration file that has something in it; what names its
// kind in errors.
// An empty file is an error rather than all defaults: it is what a failed write
// leaves behind. A file that is no regular one, such as /dev/stdin, has no size to test.
func readFile(name, what string) ([]byte, error) {
	info, err := os.Stat(name)
	if err == nil && info.Mode().IsRegular() && info.Size() > maxConfig {
		return nil, fmt.Errorf("failed to read %s config file %q, error: larger than %d bytes", what, name, maxConfig)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("failed to read %s config file %q, error: %w", what, name, err)
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("kubelet config file %q was empty", name)
	}
	return data, nil
}

// resolvePaths makes a file's relative paths absolute
// (pkg/kubelet/apis/config/helpers.go).
// The kubelet may be started from anywhere, while a file's author thinks of the
// file's own directory. The list is upstream's: fields that are missing in it are relative to the
// working directory there, too.
func resolvePaths(c *kubeletconfig.KubeletConfiguration, dir string) {
	paths := []*string{
		&c.StaticPodPath, &c.Authentication.X509.ClientCAFile, &c.TLSCertFile, &c.TLSPrivateKeyFile,
		c.ResolverConfig, &c.VolumePluginDir, &c.PodLogsDir,
	}
	for _, p := range paths {
		if p != nil && *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
	}
}

// MergeDir lays the drop-in files of --config-dir over a configuration: those
// named *.conf, in lexical order, as JSON merge patches. It returns the files
// that it left out.
// A drop-in is a patch of the file's text, not of values: what it doesn't name
// keeps the value of the file, also where that is a default (KEP-3983). null in a patch removes a
// field, lists are replaced whole (RFC 7396).
func MergeDir(c *kubeletconfig.KubeletConfiguration, dir string, gates map[string]bool) (merged *kubeletconfig.KubeletConfiguration, skipped []string, err error) {
	base, err := json.Marshal(c)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to marshal base config: %w", err)
	}
	// WalkDir goes in lexical order, sub-directories in their turn.
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return nil
		case filepath.Ext(d.Name()) != ".conf":
			skipped = append(skipped, path)
			return nil
		}
		patch, err := loadDropIn(path)
		if err != nil {
			return err
		}
		if base, err = jsonpatch.MergePatch(base, patch); err != nil {
			return fmt.Errorf("failed to merge drop-in and current config: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("failed to walk through kubelet dropin directory %q: %w", dir, err)
	}
	merged, err = decodeMerged(base, gates)
	return merged, skipped, err
}

// decodeMerged makes a configuration of merged JSON, and sets its defaults
// anew: a patch may have removed a field by null. The base has been read strictly; what patches
// add is not.
func decodeMerged(data []byte, gates map[string]bool) (*kubeletconfig.KubeletConfiguration, error) {
	c := &kubeletconfig.KubeletConfiguration{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("failed to unmarshal merged JSON into kubelet configuration: %w", err)
	}
	return c, setDefaults(c, gates)
}

// loadDropIn reads a drop-in file as JSON.
// The errors name the file: there may be many. Three of its errors have texts of their own
// upstream.
func loadDropIn(path string) ([]byte, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	data, err := readFile(abs, "drop-in kubelet")
	if err == nil {
		data, err = decodeDropIn(data)
	}
	switch {
	case errors.Is(err, errNoKind):
		return nil, fmt.Errorf("failed to load kubelet dropin file, path: %s, no apiVersion/kind", path)
	case errors.Is(err, errOtherKind):
		return nil, fmt.Errorf("failed to load kubelet dropin file, path: %s, %w", path, err)
	case err != nil:
		return nil, fmt.Errorf("failed to load kubelet dropin file, path: %s, error: %w", path, err)
	}
	return data, nil
}

// What loadDropIn words in its own way.
var (
	errNoKind    = errors.New("no apiVersion/kind")
	errOtherKind = errors.New("unknown apiVersion/kind")
)

// decodeDropIn makes JSON of a drop-in file. Unknown fields stay, for nobody
// looks at them; duplicate ones are errors.
// A drop-in must say its kind, so that one for another component is found out. Decoding into the
// typed struct would lose which fields the file names.
func decodeDropIn(data []byte) ([]byte, error) {
	factory, err := codecs(true)
	if err != nil {
		return nil, err
	}
	obj, gvk, err := factory.UniversalDeserializer().Decode(data, nil, &unstructured.Unstructured{})
	switch {
	case runtime.IsMissingKind(err), runtime.IsMissingVersion(err):
		return nil, errNoKind
	case err != nil:
		return nil, err
	case gvk == nil || gvk.Empty():
		return nil, errNoKind
	case *gvk != wantKind():
		return nil, fmt.Errorf("%w: %v", errOtherKind, gvk)
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%w: %v", errOtherKind, gvk)
	}
	return json.Marshal(u.Object)
}

// wantKind is the only kind that a drop-in may have.
func wantKind() schema.GroupVersionKind {
	return kubeletconfig.SchemeGroupVersion.WithKind("KubeletConfiguration")
}
