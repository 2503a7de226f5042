package features

// Known is a gate with its stage, ALPHA, BETA, DEPRECATED or, for GA, "", and whether it
// is on.
type Known struct {
	Name, Stage string
	On          bool
}

// All are all gates, by name.
func (g Gates) All() []Known {
	out := make([]Known, len(known))
	for i := range known {
		k := &known[i]
		out[i] = Known{k.name, string(k.stage), g.Enabled(k.name)}
		if k.stage == ga {
			out[i].Stage = ""
		}
	}
	return out
}
