//go:build linux

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/kubelet"
)

// registerFormats makes the format json known, once per process and before any
// flag is added. Formats are registered globally in component-base.
var registerFormats = sync.OnceValue(func() error {
	return logsapi.RegisterLogFormat(logsapi.JSONLogFormat, jsonFormat{}, logsapi.LoggingBetaOptions)
})

// startLogging applies the logging configuration, once per process.
// The gates of logging are known to component-base alone, so the
// configuration's other gates are left out here; the kubelet judges those. klog's state is
// global, so a second start in one process would be refused.
func startLogging(c *kubeletconfig.KubeletConfiguration) error {
	v, err := version.ParseSemantic(kubelet.Version)
	if err != nil {
		return err
	}
	gates := featuregate.NewVersionedFeatureGate(v)
	if err := logsapi.AddFeatureGates(gates); err != nil {
		return err
	}
	for name, on := range c.FeatureGates {
		if _, ok := gates.GetAll()[featuregate.Feature(name)]; !ok {
			continue
		}
		if err := gates.SetFromMap(map[string]bool{name: on}); err != nil {
			return err
		}
	}
	if err := logsapi.ValidateAndApplyAsField(&c.Logging, gates, field.NewPath("logging")); err != nil {
		return fmt.Errorf("initialize logging: %w", err)
	}
	return nil
}

// LogFailure logs why the command failed, as one line on stderr whatever is in
// the error.
// Errors of several lines, as aggregates have, would break tools that read logs
// by line. The depth makes the line's caller that of LogFailure.
func LogFailure(err error) {
	if text := err.Error(); strings.Contains(text, "\n") {
		err = errors.New(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), " "))
	}
	klog.ErrorSDepth(1, err, "command failed")
	klog.Flush()
}

// logf takes the kubelet's log lines.
func logf(format string, args ...any) { klog.InfofDepth(1, format, args...) }

// jsonFormat makes lines with the keys of component-base/logs/json: ts in
// milliseconds since 1970, caller, msg, v for information and err for errors. component-base's
// own needs zap, a dependency that this does without.
type jsonFormat struct{}

// Create implements logsapi.LogFormatFactory. Errors go to the error stream,
// and with splitStream information to the other one. Text is klog's own format.
func (jsonFormat) Create(c logsapi.LoggingConfiguration, o logsapi.LoggingOptions) (logr.Logger, logsapi.RuntimeControl) {
	h := &jsonHandler{verbosity: &atomic.Int64{}}
	h.verbosity.Store(int64(c.Verbosity))
	h.errors = newJSON(o.ErrorStream)
	h.infos = h.errors
	if c.Options.JSON.SplitStream {
		h.infos = newJSON(o.InfoStream)
	}
	return logr.FromSlogHandler(h), logsapi.RuntimeControl{
		Flush: func() {},
		SetVerbosityLevel: func(v uint32) error {
			h.verbosity.Store(int64(v))
			return nil
		},
	}
}

// newJSON returns a handler that writes a line for each record. slog's level is
// the negative verbosity, so no level is too low. Keys within groups belong to the callers.
func newJSON(w io.Writer) slog.Handler {
	if w == nil {
		w = os.Stderr
	}
	return slog.NewJSONHandler(w, &slog.HandlerOptions{
		Level: slog.Level(-1 << 31),
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) > 0 {
				return a
			}
			switch a.Key {
			case slog.TimeKey:
				return slog.Float64("ts", float64(a.Value.Time().UnixNano())/1e6)
			case slog.LevelKey:
				level, _ := a.Value.Any().(slog.Level)
				if level >= slog.LevelError {
					return slog.Attr{}
				}
				return slog.Int("v", int(-level))
			}
			return a
		},
	})
}

// jsonHandler splits records by level and adds their callers.
type jsonHandler struct {
	verbosity     *atomic.Int64
	infos, errors slog.Handler
}

// Enabled implements slog.Handler: errors are always logged. V(n) of klog arrives as the level
// -n.
func (h *jsonHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelError || int64(-level) <= h.verbosity.Load()
}

// Handle implements slog.Handler. The caller is the directory and file, as klog
// has it.
func (h *jsonHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.PC != 0 {
		f, _ := runtime.CallersFrames([]uintptr{r.PC}).Next()
		file := filepath.Join(filepath.Base(filepath.Dir(f.File)), filepath.Base(f.File))
		r.AddAttrs(slog.String("caller", file+":"+strconv.Itoa(f.Line)))
	}
	if r.Level >= slog.LevelError {
		return h.errors.Handle(ctx, r)
	}
	return h.infos.Handle(ctx, r)
}

// WithAttrs implements slog.Handler. The verbosity stays shared, so that a
// change of it reaches every logger.
func (h *jsonHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &jsonHandler{h.verbosity, h.infos.WithAttrs(attrs), h.errors.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h *jsonHandler) WithGroup(name string) slog.Handler {
	return &jsonHandler{h.verbosity, h.infos.WithGroup(name), h.errors.WithGroup(name)}
}
