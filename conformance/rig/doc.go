// Package rig is what the scripts in hack need to bring a runtime up for the
// conformance checks and to take it down: a trial whether it can run pods at
// all, and the removal of every pod that is left. It takes the CRI as it is, and
// nothing else of Drydock's, so that trouble with a machine is told apart from
// trouble with the checks.
package rig
