// Package config completes and judges a KubeletConfiguration: the defaults that loading a file
// gives it, and what upstream refuses in it.
//
// A configuration goes through three steps, in this order. SetDefaults fills in what is left out
// (defaults.go; pkg/kubelet/apis/config/v1beta1/defaults.go). ValidateConfiguration finds what
// upstream's validator finds (validation.go, and its second half in node.go;
// pkg/kubelet/apis/config/validation). ValidateValues finds what passes there and fails later,
// when the kubelet's parts are made of it (values.go). Validate is the two together, for callers
// that have a configuration and no machine.
//
// Faults carry upstream's whole text, word for word, since people and tests look for it, and
// beside it the field that they are about, so that a tool can point at a line. All faults are
// found, in upstream's order, not the first alone.
//
// Nothing here reads a file, a flag or the machine: what a host decides comes in as a Host.
package config
