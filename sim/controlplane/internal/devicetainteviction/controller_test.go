package devicetainteviction

import (
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
)

func TestToleratedFor(t *testing.T) {
	taint := resourcev1.DeviceTaint{Key: "a", Value: "x", Effect: resourcev1.DeviceTaintEffectNoExecute}
	tol := func(key string, effect resourcev1.DeviceTaintEffect, seconds ...int64) resourcev1.DeviceToleration {
		d := resourcev1.DeviceToleration{Key: key, Operator: resourcev1.DeviceTolerationOpExists, Effect: effect}
		if len(seconds) > 0 {
			d.TolerationSeconds = &seconds[0]
		}
		return d
	}
	const all, execute = resourcev1.DeviceTaintEffect(""), resourcev1.DeviceTaintEffectNoExecute
	for _, tt := range []struct {
		list    []resourcev1.DeviceToleration
		wait    time.Duration
		forever bool
	}{
		{},
		{list: []resourcev1.DeviceToleration{tol("b", execute)}},
		{list: []resourcev1.DeviceToleration{tol("a", execute)}, forever: true},
		{list: []resourcev1.DeviceToleration{tol("a", all)}}, // one without an effect is for no eviction
		{list: []resourcev1.DeviceToleration{tol("a", execute, 30)}, wait: 30 * time.Second},
		{list: []resourcev1.DeviceToleration{tol("a", execute, -3)}},
		{list: []resourcev1.DeviceToleration{tol("a", execute, 30), tol("", execute, 20)}, wait: 20 * time.Second},
		{list: []resourcev1.DeviceToleration{tol("a", execute, 30), tol("", execute)}, forever: true},
	} {
		if wait, forever := toleratedFor(tt.list, taint); wait != tt.wait || forever != tt.forever {
			t.Errorf("%v: %v %v, want %v %v", tt.list, wait, forever, tt.wait, tt.forever)
		}
	}
}
