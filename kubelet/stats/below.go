package stats

// Prober is a Machine that can tell at once how much there is, as a simulated
// one can.
type Prober interface {
	// Below reports whether there may now be less of something than floor says. It
	// is no call, takes no time, and keeps nothing.
	Below(floor Floor) bool
}
