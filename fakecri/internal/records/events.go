package records

import runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

const (
	EventCreated = runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT
	EventStarted = runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT
	EventStopped = runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT
	EventDeleted = runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT
)
