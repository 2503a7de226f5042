package oom

import "testing"

func TestEventMessage(t *testing.T) {
	for _, tc := range []struct {
		k    Kill
		want string
		ok   bool
	}{
		{Kill{Container: "/", Process: "foo", PID: 123, Victim: "/kubepods/pod1/a"}, "System OOM encountered, victim process: foo, pid: 123", true},
		{Kill{Container: "/", Process: "foo"}, "System OOM encountered", true},
		{Kill{Container: "/", PID: 123}, "System OOM encountered", true},
		{Kill{Container: "/kubepods", Process: "foo", PID: 123, Victim: "/kubepods/pod1/a"}, "", false},
		{Kill{Container: "/kubepods/pod1/a", Process: "foo", PID: 123, Victim: "/kubepods/pod1/a"}, "", false},
		{Kill{Process: "foo", PID: 123}, "", false},
	} {
		if got, ok := EventMessage(tc.k); got != tc.want || ok != tc.ok {
			t.Errorf("%+v: %q %t, want %q %t", tc.k, got, ok, tc.want, tc.ok)
		}
	}
}
