// Package gotest runs go test for suites of package drydocktest: with a Go whose maps and
// selects have a fixed order (overlay.go), under one seed after another (run.go), and sums
// up which tests failed under which (summary.go).
package gotest
