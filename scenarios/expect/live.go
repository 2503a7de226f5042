package expect

// Decided reports whether every expectation has its verdict, so that nothing that
// happens from now on matters.
func (e *Engine) Decided() bool { return e.live == 0 }
