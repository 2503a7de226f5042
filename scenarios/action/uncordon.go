package action

// Uncordon marks nodes as schedulable again, as kubectl uncordon does.
type Uncordon struct{ OnNodes }

// Do takes the mark off.
func (a *Uncordon) Do(s Stage) error { return cordon(s, a.Node.Select(s.Nodes()), false) }
