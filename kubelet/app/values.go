//go:build linux

package app

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	netutils "k8s.io/utils/net"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/kubelet"
)

// The values of flags that no library has (pkg/util/flag,
// component-base/version/verflag).

// ipValue is an address. The empty one leaves what is set. Values of these types must have a
// usable zero, since pflag makes one to find out whether a default is empty.
type ipValue struct{ ip *string }

// Type, String and Set of the types below implement pflag.Value.
func (v *ipValue) Type() string   { return "ip" }
func (v *ipValue) String() string { return deref(v.ip) }

// deref is a pointer's string; pflag asks zero values for theirs. It is only for printing.
func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (v *ipValue) Set(s string) error {
	if s == "" {
		return nil
	}
	if netutils.ParseIPSloppy(s) == nil {
		return fmt.Errorf("%q is not a valid IP address", s)
	}
	*v.ip = s
	return nil
}

// taintsValue is a list of taints, replaced at each use. Set works on a list of its own first, so
// that a mistake leaves nothing half set, apart from the old one that is gone.
type taintsValue struct{ list *[]v1.Taint }

func (v *taintsValue) Type() string { return "[]v1.Taint" }

func (v *taintsValue) String() string {
	if v.list == nil {
		return ""
	}
	out := lists.Map(*v.list, func(t v1.Taint) string { return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect) })
	return strings.Join(out, ",")
}

// Upstream's registration knows no removals, so those are left out silently.
func (v *taintsValue) Set(s string) error {
	*v.list = nil
	if s == "" {
		return nil
	}
	var list []v1.Taint
	for _, spec := range strings.Split(s, ",") {
		if strings.HasSuffix(spec, "-") { // means a removal elsewhere
			continue
		}
		t, err := parseTaint(spec)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(list, func(o v1.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect }) {
			return fmt.Errorf("duplicated taints with the same key and effect: %v", t)
		}
		list = append(list, t)
	}
	*v.list = list
	return nil
}

// parseTaint reads key=value:effect or key:effect; errors have upstream's texts
// (pkg/util/taints). The value may be empty.
func parseTaint(spec string) (v1.Taint, error) {
	pair, effect, ok := strings.Cut(spec, ":")
	key, value, _ := strings.Cut(pair, "=")
	if !ok || strings.Contains(effect, ":") || strings.Contains(value, "=") {
		return v1.Taint{}, fmt.Errorf("invalid taint spec: %v", spec)
	}
	t := v1.Taint{Key: key, Value: value, Effect: v1.TaintEffect(effect)}
	switch t.Effect {
	case v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute:
	default:
		return t, fmt.Errorf("invalid taint effect: %v, unsupported taint effect", effect)
	}
	errs := append(validation.IsValidLabelValue(value), validation.IsQualifiedName(key)...)
	if len(errs) > 0 {
		return t, fmt.Errorf("invalid taint spec: %v, %s", spec, strings.Join(errs, "; "))
	}
	return t, nil
}

// reservedMemoryValue is a list of reservations. The first use replaces what was
// set, later ones add to it. Sorted when printed: limits are a map.
type reservedMemoryValue struct {
	list *[]kubeletconfig.MemoryReservation
	used bool
}

func (v *reservedMemoryValue) Type() string { return "reserved-memory" }

func (v *reservedMemoryValue) String() string {
	if v.list == nil {
		return ""
	}
	var out []string
	for _, r := range *v.list {
		var limits []string
		for name, q := range r.Limits {
			limits = append(limits, fmt.Sprintf("%s=%s", name, q.String()))
		}
		slices.Sort(limits)
		out = append(out, fmt.Sprintf("%d:%s", r.NumaNode, strings.Join(limits, ",")))
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// A default or a file's value is replaced whole: a mixture of both could not be
// told from a mistake.
func (v *reservedMemoryValue) Set(s string) error {
	if s == "" {
		return nil
	}
	if !v.used {
		*v.list, v.used = nil, true
	}
	for _, part := range strings.Split(s, ";") {
		node, limits, ok := strings.Cut(part, ":")
		if !ok || strings.Contains(limits, ":") {
			return fmt.Errorf("the reserved memory has incorrect format, expected numaNodeID:type=quantity[,type=quantity...], got %s", part)
		}
		n, err := strconv.ParseInt(node, 10, 32)
		if err != nil {
			return fmt.Errorf("failed to convert the NUMA node ID, expected integer, got %s", node)
		}
		r := kubeletconfig.MemoryReservation{NumaNode: int32(n), Limits: v1.ResourceList{}}
		for _, limit := range strings.Split(limits, ",") {
			name, text, ok := strings.Cut(limit, "=")
			if !ok || strings.Contains(text, "=") {
				return fmt.Errorf("the reserved limit has incorrect value, expected type=quantity, got %s", limit)
			}
			if name != string(v1.ResourceMemory) && !strings.HasPrefix(name, v1.ResourceHugePagesPrefix) {
				return fmt.Errorf("memory type conversion error, unknown type: %q", name)
			}
			q, err := resource.ParseQuantity(text)
			if err != nil {
				return fmt.Errorf("failed to parse the quantity: %s", text)
			}
			r.Limits[v1.ResourceName(name)] = q
		}
		*v.list = append(*v.list, r)
	}
	return nil
}

// versionValue is --version: false, true, raw, or a version to report. It is a flag with an
// optional value, hence NoOptDefVal.
type versionValue struct{ text string }

func (v *versionValue) Type() string   { return "version" }
func (v *versionValue) String() string { return v.text }

func (v *versionValue) Set(s string) error {
	switch {
	case s == "raw":
	case strings.HasPrefix(s, "v"):
		// Only what comes after the numbers may differ.
		if rest, ok := strings.CutPrefix(s, kubelet.Version); !ok || rest != "" && rest[0] != '-' && rest[0] != '+' {
			return fmt.Errorf("version %q must match major/minor/patch of default version %q", s, kubelet.Version)
		}
	default:
		on, err := strconv.ParseBool(s)
		if err != nil {
			return err
		}
		s = strconv.FormatBool(on)
	}
	v.text = s
	return nil
}

// globalFlags are those of the libraries that upstream's kubelet is made of. They are in no
// configuration.
type globalFlags struct {
	version versionValue
	help    bool
}

// deprecatedCadvisor is upstream's text.
const deprecatedCadvisor = "This is a cadvisor flag that was mistakenly registered with the Kubelet. Due to legacy concerns, it will follow the standard CLI deprecation timeline before being removed."

// cadvisorFlags have no effect but for their names, and the forms of their
// values. The text is a default.
var cadvisorFlags = []struct{ name, kind, text string }{
	{"application-metrics-count-limit", "int", "100"},
	{"boot-id-file", "string", "/proc/sys/kernel/random/boot_id"},
	{"container-hints", "string", "/etc/cadvisor/container_hints.json"},
	{"containerd", "string", "/run/containerd/containerd.sock"},
	{"containerd-namespace", "string", "k8s.io"},
	{"enable-load-reader", "bool", "false"},
	{"event-storage-age-limit", "string", "default=0"},
	{"event-storage-event-limit", "string", "default=0"},
	{"global-housekeeping-interval", "duration", "1m0s"},
	{"log-cadvisor-usage", "bool", "false"},
	{"machine-id-file", "string", "/etc/machine-id,/var/lib/dbus/machine-id"},
	{"storage-driver-user", "string", "root"},
	{"storage-driver-password", "string", "root"},
	{"storage-driver-host", "string", "localhost:8086"},
	{"storage-driver-db", "string", "cadvisor"},
	{"storage-driver-table", "string", "stats"},
	{"storage-driver-secure", "bool", "false"},
	{"storage-driver-buffer-duration", "duration", "1m0s"},
}

// cAdvisor's flags are accepted, for existing command lines, with the values
// that they would take; ignored.go names those that are set. The default's text is set through
// the value, so that help prints it in its own form.
func (g *globalFlags) addFlags(fs *pflag.FlagSet) error {
	var errs []error
	add := func(name, kind, text string) {
		const usage = "A flag of cAdvisor, without effect."
		switch kind {
		case "int":
			fs.Int(name, 0, usage)
		case "bool":
			fs.Bool(name, false, usage)
		case "duration":
			fs.Duration(name, 0, usage)
		default:
			fs.String(name, "", usage)
		}
		f := fs.Lookup(name)
		errs = append(errs, f.Value.Set(text))
		f.DefValue = f.Value.String()
	}
	add("housekeeping-interval", "duration", "10s")
	for _, c := range cadvisorFlags {
		add(c.name, c.kind, c.text)
		fs.Lookup(c.name).Deprecated = deprecatedCadvisor
	}
	g.version.text = "false"
	fs.Var(&g.version, "version", "Print the version and quit: --version, or --version=raw with details. --version=vX.Y.Z... sets the version that is reported.")
	fs.Lookup("version").NoOptDefVal = "true"
	fs.BoolVarP(&g.help, "help", "h", false, "help for kubelet")
	return errors.Join(errs...)
}
