// Package usage has amounts that change over time: what a program or a machine
// uses of memory, CPU, disk, inodes or process numbers. It knows neither
// Kubernetes nor containers.
//
// A [Curve] is made of straight lines, so what is asked of it (its value, its
// peak, when it first passes a limit, its integral) is computed, not sampled.
package usage
