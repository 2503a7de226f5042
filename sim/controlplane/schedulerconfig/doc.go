// Package schedulerconfig completes, judges and resolves a KubeSchedulerConfiguration
// (kubescheduler.config.k8s.io/v1), for who loads one and for the scheduler that goes by it.
//
// The way of a configuration, in this order:
//
//   - DecodeArgs gives plugins' arguments their types (arguments.go); who reads files does that
//     itself, to tell where a mistake stands.
//   - SetDefaults fills in what is left out (defaults.go; pkg/scheduler/apis/config/v1/defaults.go).
//   - Validate finds what upstream refuses when it loads a file, and what it refuses when it makes
//     its profiles (validation.go, profiles.go; pkg/scheduler/apis/config/validation and
//     framework/runtime). Details are upstream's, word for word. Beyond that it refuses what
//     Drydock has no part for, with a word (refused.go).
//   - Resolve makes of it what a scheduler asks: a Config.
//   - NoEffect tells what is accepted and changes nothing.
//
// plugins.go is the table of upstream's plugins: which are on by default, at which extension
// points, with which weight.
package schedulerconfig
