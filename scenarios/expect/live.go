package expect

// Decided reports whether every expectation has its verdict, so that nothing that
// happens from now on matters. A run may end then, if its scenario says so.
func (e *Engine) Decided() bool { return e.live == 0 }
