package kuberuntime

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// environment is a container's environment: plain values with $(VAR) of the
// variables before them expanded, in the order of the spec, the last of a name
// winning. Values from other objects and service variables have their place
// here.
func environment(c *v1.Container) []*runtimeapi.KeyValue {
	if len(c.Env) == 0 {
		return nil
	}
	out := make([]*runtimeapi.KeyValue, 0, len(c.Env))
	for i := range c.Env {
		e := &c.Env[i]
		if e.ValueFrom != nil {
			continue
		}
		value := expand(e.Value, out)
		if old := lookup(out, e.Name); old != nil {
			old.Value = []byte(value)
			continue
		}
		out = append(out, &runtimeapi.KeyValue{Key: e.Name, Value: []byte(value)})
	}
	return out
}

func lookup(env []*runtimeapi.KeyValue, name string) *runtimeapi.KeyValue {
	for _, kv := range env {
		if kv.Key == name {
			return kv
		}
	}
	return nil
}

// expand replaces $(NAME) by the variable's value; $$ stands for $, and what
// names no variable stays (upstream third_party/forked/golang/expansion).
func expand(s string, env []*runtimeapi.KeyValue) string {
	if strings.IndexByte(s, '$') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		switch s[i+1] {
		case '$':
			b.WriteByte('$')
			i++
		case '(':
			end := strings.IndexByte(s[i+2:], ')')
			if end < 0 { // no closing bracket: as it is
				b.WriteString("$(")
				i++
				continue
			}
			name := s[i+2 : i+2+end]
			if kv := lookup(env, name); kv != nil {
				b.Write(kv.Value)
			} else {
				b.WriteString("$(" + name + ")")
			}
			i += 2 + end
		default:
			b.WriteString(s[i : i+2])
			i++
		}
	}
	return b.String()
}

// expandAll is expand over a command line; a line without a $ is shared.
func expandAll(list []string, env []*runtimeapi.KeyValue) []string {
	for i, s := range list {
		if strings.IndexByte(s, '$') < 0 {
			continue
		}
		out := make([]string, len(list))
		copy(out, list[:i])
		for j := i; j < len(list); j++ {
			out[j] = expand(list[j], env)
		}
		return out
	}
	return list
}
