// Package podautoscaler scales workloads by HorizontalPodAutoscalers
// (autoscaling/v2) on the resources that their pods use. It mirrors upstream's
// pkg/controller/podautoscaler: horizontal.go decides, replica_calculator.go
// counts.
//
// Resource and ContainerResource metrics come from a Metrics, which stands for
// metrics-server. Object, Pods and External metrics are Figures, whose values are
// stated; without any these sources fail as in a cluster without their APIs.
// Scaling to zero (HPAScaleToZero) is off, as upstream's default.
//
// controller.go is the controller and one look at one autoscaler; metrics.go
// reads what each of its metrics proposes, figures.go those with names; replicas.go counts the replicas that a
// sample calls for; behavior.go bounds how far and how fast they may move.
package podautoscaler
