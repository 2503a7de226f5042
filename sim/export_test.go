package sim

// Leaks is walkLeaks for tests outside of the package: what it found, as text.
func Leaks(root any, gone map[string]bool) []string {
	var out []string
	for _, l := range walkLeaks(root, gone).found {
		out = append(out, l.String())
	}
	return out
}
