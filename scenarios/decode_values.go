package scenarios

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
)

// special decodes the types that are written otherwise than their Go types say.
func (d *decoder) special(n *yaml.Node, p *path, v reflect.Value) bool {
	switch x := v.Addr().Interface().(type) {
	case *time.Duration:
		if t, ok := d.duration(n, p); ok {
			*x = t
		}
	case *Range:
		d.timeRange(n, p, x)
	case *Time:
		if n.Kind == yaml.ScalarNode && n.Value == "end" {
			x.End = true
		} else if t, ok := d.duration(n, p); ok {
			x.After = t
		}
	case *Signal:
		d.signal(n, p, x)
	case *JSON:
		b, err := json.Marshal(plain(n))
		if err != nil {
			d.errorf(n, p, "has no JSON: %v", err)
		}
		*x = b
	case *StaticPods:
		d.staticPods(n, p, x)
	case *Manifest:
		d.manifest(n, p, x)
	default:
		return n.Kind == yaml.ScalarNode && d.shortForm(n, p, v) || d.kubernetes(n, p, v)
	}
	return true
}

// shortForm decodes the types that can be written as a scalar besides.
func (d *decoder) shortForm(n *yaml.Node, p *path, v reflect.Value) bool {
	switch x := v.Addr().Interface().(type) {
	case *Nodes:
		if s, ok := d.text(n, p); ok {
			*x = Nodes{s}
		}
	case *KubeletRestart:
		if n.Value != "never" {
			d.errorf(n, p, "want never or {after: 10s}, got %s", describe(n))
		}
		x.Never = true
	case *Usage:
		if q, ok := d.quantity(n, p); ok {
			x.Value = &q
		}
	case *LogLine:
		x.Line = n.Value
	case *Port:
		d.value(n, p, reflect.ValueOf(&x.Port).Elem())
	case *CRIError:
		s, _ := d.text(n, p)
		x.Code = s
		d.enum(n, p, reflect.ValueOf(s), d.l.structType(reflect.TypeFor[CRIError]()).fields["code"].enum)
	case *APIError:
		d.value(n, p, reflect.ValueOf(&x.Code).Elem())
	case Shorthand:
		d.value(n, p, reflect.ValueOf(x.Shorthand()).Elem())
	default:
		return false
	}
	return true
}

// kubernetes decodes the special types of Kubernetes.
func (d *decoder) kubernetes(n *yaml.Node, p *path, v reflect.Value) bool {
	switch x := v.Addr().Interface().(type) {
	case *resource.Quantity:
		if q, ok := d.quantity(n, p); ok {
			*x = q
		}
	case *resource.QuantityValue:
		if q, ok := d.quantity(n, p); ok {
			x.Quantity = q
		}
	case *intstr.IntOrString:
		if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int" {
			var i int32
			if n.Decode(&i) != nil {
				d.mismatch(n, p, "a number or a text")
			}
			*x = intstr.FromInt32(i)
		} else if s, ok := d.text(n, p); ok {
			*x = intstr.FromString(s)
		}
	case *logsapi.TimeOrMetaDuration:
		var ns int64
		if n.ShortTag() == "!!int" && n.Decode(&ns) == nil {
			x.Duration.Duration = time.Duration(ns)
			return true
		}
		d.value(n, p, reflect.ValueOf(&x.Duration).Elem())
		x.SerializeAsString = true
	case *metav1.Time:
		x.Time = d.timestamp(n, p)
	case *metav1.MicroTime:
		x.Time = d.timestamp(n, p)
	case *metav1.Duration:
		if s, ok := d.text(n, p); ok {
			t, err := time.ParseDuration(s)
			if err != nil {
				d.errorf(n, p, "%q is no duration such as 10s or 1m30s", short(s))
			}
			x.Duration = t
		}
	case *runtime.RawExtension:
		x.Raw, _ = json.Marshal(plain(n))
	case *metav1.FieldsV1:
		x.Raw, _ = json.Marshal(plain(n))
	default:
		return false
	}
	return true
}

func (d *decoder) timestamp(n *yaml.Node, p *path) time.Time {
	if n.Kind != yaml.ScalarNode {
		d.mismatch(n, p, "a time such as 2026-01-01T00:00:00Z")
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, n.Value)
	if err != nil {
		d.errorf(n, p, "%q is no time such as 2026-01-01T00:00:00Z", short(n.Value))
	}
	return t.UTC()
}

// maxDuration bounds the times of a scenario: a year.
const maxDuration = 365 * 24 * time.Hour

func (d *decoder) duration(n *yaml.Node, p *path) (time.Duration, bool) {
	if n.Kind != yaml.ScalarNode {
		d.mismatch(n, p, "a time such as 10s or 1m30s")
		return 0, false
	}
	return d.durationText(n, p, n.Value)
}

func (d *decoder) durationText(n *yaml.Node, p *path, s string) (time.Duration, bool) {
	t, err := time.ParseDuration(s)
	switch {
	case err != nil && n.ShortTag() == "!!int":
		d.errorf(n, p, "want a time such as 10s or 1m30s, got %s: which unit?", describe(n))
	case err != nil:
		d.errorf(n, p, "%q is no time such as 10s or 1m30s", short(s))
	case t < 0:
		d.errorf(n, p, "%s is negative", s)
	case t > maxDuration:
		d.errorf(n, p, "%s is longer than ten years", s)
	default:
		return t, true
	}
	return 0, false
}

func (d *decoder) timeRange(n *yaml.Node, p *path, x *Range) {
	if n.Kind != yaml.ScalarNode {
		d.mismatch(n, p, "a time such as 2s, or a range such as 2s..4s")
		return
	}
	lo, hi, two := strings.Cut(n.Value, "..")
	a, ok := d.durationText(n, p, strings.TrimSpace(lo))
	if !ok {
		return
	}
	b := a
	if two {
		if b, ok = d.durationText(n, p, strings.TrimSpace(hi)); !ok {
			return
		}
	}
	if b < a {
		d.errorf(n, p, "%s: the range ends before it begins", n.Value)
		return
	}
	*x = Range{a, b}
}

// quantityForm keeps out what the library would take very long to parse.
var quantityForm = regexp.MustCompile(`^[+-]?[0-9.]{1,40}([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$`)

func (d *decoder) quantity(n *yaml.Node, p *path) (resource.Quantity, bool) {
	if n.Kind != yaml.ScalarNode {
		d.mismatch(n, p, "a quantity such as 500m or 1Gi")
		return resource.Quantity{}, false
	}
	q, err := resource.Quantity{}, resource.ErrFormatWrong
	if quantityForm.MatchString(n.Value) {
		q, err = resource.ParseQuantity(n.Value)
	}
	if err != nil {
		d.errorf(n, p, "%q is no quantity such as 500m or 1Gi", short(n.Value))
		return q, false
	}
	// The text is remembered now, while nobody else can see the quantity.
	_ = q.String()
	return q, true
}

func (d *decoder) signal(n *yaml.Node, p *path, x *Signal) {
	if n.Kind != yaml.ScalarNode {
		d.mismatch(n, p, "a signal such as SIGKILL")
		return
	}
	i, err := strconv.Atoi(n.Value)
	if err != nil {
		name := "SIG" + strings.TrimPrefix(strings.ToUpper(n.Value), "SIG")
		i = slices.Index(signals(), name)
	}
	if i < 1 || i > 64 {
		d.errorf(n, p, "%q is no signal such as SIGKILL%s", short(n.Value), suggest.Suffix(n.Value, signals()[1:]))
		return
	}
	*x = Signal(i)
}

func (d *decoder) staticPods(n *yaml.Node, p *path, x *StaticPods) {
	if n.Kind != yaml.MappingNode {
		d.mismatch(n, p, "a mapping of file names to manifests")
		return
	}
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		at := p.field(k.Value)
		if !d.key(k, at, seen) {
			continue
		}
		s := StaticPod{File: k.Value}
		d.value(n.Content[i+1], at, reflect.ValueOf(&s.Manifest).Elem())
		*x = append(*x, s)
	}
}

// signals are the names of Linux' signals, by number.
func signals() []string {
	return strings.Fields("- SIGHUP SIGINT SIGQUIT SIGILL SIGTRAP SIGABRT SIGBUS SIGFPE SIGKILL SIGUSR1 SIGSEGV SIGUSR2 SIGPIPE SIGALRM SIGTERM " +
		"SIGSTKFLT SIGCHLD SIGCONT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGXCPU SIGXFSZ SIGVTALRM SIGPROF SIGWINCH SIGIO SIGPWR SIGSYS")
}
