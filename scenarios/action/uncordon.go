package action

// Uncordon lets the scheduler use nodes again.
type Uncordon struct{ OnNodes }

// About is the field's description.
func (*Uncordon) About() string { return "Marks nodes as schedulable again, as kubectl uncordon does." }

// Do takes the mark off.
func (a *Uncordon) Do(s Stage) error { return cordon(s, a.Node.Select(s.Nodes()), false) }
