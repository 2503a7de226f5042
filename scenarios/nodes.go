package scenarios

import "strconv"

// NodeNames returns the names of all nodes, group by group.
func (s *Scenario) NodeNames() []string {
	var out []string
	for i := range s.Spec.Nodes {
		out = append(out, s.Spec.Nodes[i].NodeNames()...)
	}
	return out
}

// NodeNames returns the names of the group's nodes: name-0, name-1 and so on,
// or just the name if the group has no count.
func (g *NodeGroup) NodeNames() []string {
	if g.Count == nil {
		return []string{g.Name}
	}
	var out []string
	for i := range *g.Count {
		out = append(out, g.Name+"-"+strconv.Itoa(i))
	}
	return out
}

// SelectNodes returns the nodes that a selection selects, in the order of the
// scenario's nodes, each once. An empty selection selects none.
func (s *Scenario) SelectNodes(sel Nodes) []string {
	if len(sel) == 0 {
		return nil
	}
	var out []string
	for _, name := range s.NodeNames() {
		for _, pattern := range sel {
			if MatchPattern(pattern, name) {
				out = append(out, name)
				break
			}
		}
	}
	return out
}

// MatchPattern says whether s matches a pattern in which * stands for any text
// and ? for one byte.
func MatchPattern(p, s string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == s[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
