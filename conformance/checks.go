//go:build linux

package conformance

import "sort"

// checks lists all checks by name; reg, which may be nil for a list that is not
// run, has their images. The order is that of reports, which are compared line by
// line between runtimes and versions. Kubelet checks parse their scenarios each time, as images
// and paths are put into the text.
func checks(reg Registry, dir string) ([]*check, error) {
	list, err := kubeletChecks(reg, dir)
	if err != nil {
		return nil, err
	}
	// So each check asks from inside, by the actor's own commands, or from outside, by files and
	// ports.
	for _, part := range [][]*check{runtimeChecks(), sandboxChecks(), containerChecks(), stopChecks(), execChecks(), logChecks(), statsChecks(), imageChecks(), configChecks(), streamChecks()} {
		list = append(list, part...)
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].name < list[j].name })
	return list, nil
}
