package running

import "github.com/drydock-sim/drydock/scenarios/expect"

// Logs is for use between runs, as the others here.
func (s *state) Logs(namespace, pod, container string) string {
	p := s.Pod(namespace, pod)
	if p == nil {
		return ""
	}
	if n := s.cluster.Node(p.Spec.NodeName); n != nil {
		return n.ContainerLog(p, container)
	}
	return ""
}

// HTTP is the answer that the timeline's last get of the path had.
func (s *state) HTTP(node, path string) *expect.HTTPAnswer {
	n := s.cluster.Node(node)
	if n == nil {
		return nil
	}
	a, asked := n.Answer(path)
	if !asked {
		return nil
	}
	return &expect.HTTPAnswer{Code: int64(a.Code), Body: a.Body}
}

// Metric asks the node's kubelet.
func (s *state) Metric(node, name string, labels map[string]string) float64 {
	n := s.cluster.Node(node)
	if n == nil {
		return 0
	}
	return n.Metric(name, labels)
}
