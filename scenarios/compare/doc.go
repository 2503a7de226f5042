// Package compare has what two scenarios came to, run with the same seeds:
// usually one scenario with two configurations of the kubelet.
//
//	c := compare.New(a, b)
//	c.Seeds = seeds // and the runs of both sides, one a seed
//	c.WriteText(os.Stdout)
//
// New finds what the two documents do not agree on, and warns where that is more
// than a configuration: then the figures compare machines or workloads, not
// kubelets. compare.go has the sides, the differences and the figures, which are
// compared seed by seed, since seeds differ more among themselves than
// configurations often do; pods.go how the pods of one name fared on both sides;
// text.go writes it all for a reader and as JSON.
package compare
