//go:build linux

package app

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/kubelet/internal/certificate"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
)

// commandLine is a parsed command line. It is filled in steps: parse, load, check.
type commandLine struct {
	set    *pflag.FlagSet
	flags  *Flags
	global globalFlags
	// config is what is in force: files and flags.
	config *kubeletconfig.KubeletConfiguration
	// skipped are files of --config-dir that are no drop-ins.
	skipped []string
	// lenient is what a strict reading says of --config.
	lenient error
	// api is how the API server is reached; nil in standalone mode.
	api *rest.Config
	// certificates are told of at /metrics.
	certificates *certificate.Metrics
}

// newFlagSet makes the whole set of flags around a configuration.
// Both - and _ separate words in names, as of old. Names in config files and docs have dashes.
func newFlagSet(flags *Flags, global *globalFlags, c *kubeletconfig.KubeletConfiguration) (*pflag.FlagSet, error) {
	fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	fs.SortFlags = true
	fs.Usage = func() {}
	flags.AddFlags(fs)
	AddConfigFlags(fs, c)
	return fs, global.addFlags(fs)
}

// newCommandLine returns an unparsed command line with its defaults. Messages of pflag itself go
// to stderr.
func newCommandLine(stderr io.Writer) (*commandLine, error) {
	cl := &commandLine{flags: NewFlags(), config: NewConfiguration(), certificates: certificate.NewMetrics()}
	var err error
	if cl.set, err = newFlagSet(cl.flags, &cl.global, cl.config); err != nil {
		return nil, err
	}
	cl.set.SetOutput(stderr)
	return cl, nil
}

// parse reads the flags. Each deprecated one makes a line on the set's output. Arguments that are
// no flags are upstream's unknown commands.
func (cl *commandLine) parse(args []string) error {
	if err := cl.set.Parse(args); err != nil {
		return fmt.Errorf("failed to parse kubelet flag: %w", err)
	}
	if rest := cl.set.Args(); len(rest) > 0 {
		return fmt.Errorf("unknown command %s", rest[0])
	}
	return nil
}

// load reads the configuration files that the flags name, and lays the flags
// over them (upstream's order: defaults, --config, --config-dir, flags).
// Flags have to win over files that they name, so they are parsed twice: once
// to find the files, once over what those say. Gates are judged before the files are read and
// again with them, since a file may name others.
func (cl *commandLine) load(args []string) error {
	const gates = "failed to set feature gates from initial flags-based config: %w"
	if _, err := features.Resolve(cl.config.FeatureGates); err != nil {
		return fmt.Errorf(gates, err)
	}
	if err := cl.flags.Validate(); err != nil {
		return fmt.Errorf("failed to validate kubelet flags: %w", err)
	}
	file, dir := cl.flags.Config, cl.flags.ConfigDir
	flagGates := cl.config.FeatureGates
	if file != "" {
		c, err := LoadFile(file, flagGates, func(err error) { cl.lenient = err })
		if err != nil {
			return fmt.Errorf("failed to load kubelet config file, path: %s, error: %w", file, err)
		}
		cl.config = c
	}
	if dir != "" {
		c, skipped, err := MergeDir(cl.config, dir, flagGates)
		if err != nil {
			return fmt.Errorf("failed to merge kubelet configs: %w", err)
		}
		cl.config, cl.skipped = c, skipped
	}
	if file == "" && dir == "" {
		return nil
	}
	if err := overlay(cl.config, args); err != nil {
		return fmt.Errorf("failed to precedence kubeletConfigFlag: %w", err)
	}
	if _, err := features.Resolve(cl.config.FeatureGates); err != nil {
		return fmt.Errorf(gates, err)
	}
	return nil
}

// overlay parses a command line anew, into a configuration that came from
// files. A flag replaces a whole map or list, but for the feature gates: those
// that no flag names stay as the files have them. Flags of the other kind are parsed into a
// throw-away value: they are in force already.
func overlay(c *kubeletconfig.KubeletConfiguration, args []string) error {
	gates := c.FeatureGates
	fs, err := newFlagSet(NewFlags(), &globalFlags{}, c)
	if err != nil {
		return err
	}
	fs.SetOutput(io.Discard) // deprecations were told before
	if err := fs.Parse(args); err != nil {
		return err
	}
	for name, on := range gates {
		if _, ok := c.FeatureGates[name]; !ok {
			c.FeatureGates[name] = on
		}
	}
	return nil
}
