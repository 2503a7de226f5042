package metrics

import dto "github.com/prometheus/client_model/go"

const (
	counter   = dto.MetricType_COUNTER
	gauge     = dto.MetricType_GAUGE
	histogram = dto.MetricType_HISTOGRAM
)

// family is what a family says of itself: its type and help.
type family struct {
	kind dto.MetricType
	help string
}

// families are those of all paths of metrics.
var families = map[string]family{
	"container_cpu_usage_seconds_total":                  {counter, "[STABLE] Cumulative cpu time consumed by the container in core-seconds"},
	"container_memory_working_set_bytes":                 {gauge, "[STABLE] Current working set of the container in bytes"},
	"container_start_time_seconds":                       {gauge, "[STABLE] Start time of the container since unix epoch in seconds"},
	"container_swap_limit_bytes":                         {gauge, "[ALPHA] Current amount of the container swap limit in bytes. Reported only on non-windows systems"},
	"container_swap_usage_bytes":                         {gauge, "[ALPHA] Current amount of the container swap usage in bytes. Reported only on non-windows systems"},
	"node_cpu_usage_seconds_total":                       {counter, "[STABLE] Cumulative cpu time consumed by the node in core-seconds"},
	"node_memory_working_set_bytes":                      {gauge, "[STABLE] Current working set of the node in bytes"},
	"node_swap_usage_bytes":                              {gauge, "[ALPHA] Current swap usage of the node in bytes. Reported only on non-windows systems"},
	"pod_cpu_usage_seconds_total":                        {counter, "[STABLE] Cumulative cpu time consumed by the pod in core-seconds"},
	"pod_memory_working_set_bytes":                       {gauge, "[STABLE] Current working set of the pod in bytes"},
	"pod_swap_usage_bytes":                               {gauge, "[ALPHA] Current amount of the pod swap usage in bytes. Reported only on non-windows systems"},
	"resource_scrape_error":                              {gauge, "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise"},
	"scrape_error":                                       {gauge, "[ALPHA] 1 if there was an error while getting container metrics, 0 otherwise"},
	"prober_probe_total":                                 {counter, "[BETA] Cumulative number of a liveness, readiness or startup probe for a container by result."},
	"process_start_time_seconds":                         {gauge, "[ALPHA] Start time of the process since unix epoch in seconds."},
	"kubelet_active_pods":                                {gauge, "[ALPHA] The number of pods the kubelet considers active and which are being considered when admitting new pods. static is true if the pod is not from the apiserver."},
	"kubelet_admission_rejections_total":                 {counter, "[ALPHA] Cumulative number pod admission rejections by the Kubelet."},
	"kubelet_cgroup_version":                             {gauge, "[ALPHA] cgroup version on the hosts."},
	"kubelet_containers_per_pod_count":                   {histogram, "[ALPHA] The number of containers per pod."},
	"kubelet_credential_provider_config_info":            {gauge, "[ALPHA] Information about the last applied credential provider configuration with hash as label"},
	"kubelet_credential_provider_plugin_duration":        {histogram, "[ALPHA] Duration of execution in seconds for credential provider plugin"},
	"kubelet_credential_provider_plugin_errors_total":    {counter, "[ALPHA] Number of errors from credential provider plugin"},
	"kubelet_desired_pods":                               {gauge, "[ALPHA] The number of pods the kubelet is being instructed to run. static is true if the pod is not from the apiserver."},
	"kubelet_evented_pleg_connection_error_count":        {counter, "[ALPHA] The number of errors encountered during the establishment of streaming connection with the CRI runtime."},
	"kubelet_evented_pleg_connection_latency_seconds":    {histogram, "[ALPHA] The latency of streaming connection with the CRI runtime, measured in seconds."},
	"kubelet_evented_pleg_connection_success_count":      {counter, "[ALPHA] The number of times a streaming client was obtained to receive CRI Events."},
	"kubelet_evictions":                                  {counter, "[ALPHA] Cumulative number of pod evictions by eviction signal"},
	"kubelet_managed_ephemeral_containers":               {gauge, "[ALPHA] Current number of ephemeral containers in pods managed by this kubelet."},
	"kubelet_metrics_provider":                           {gauge, "[ALPHA] Metrics provider used by kubelet to collect container stats. Values can be 'cadvisor' and 'cri'"},
	"kubelet_mirror_pods":                                {gauge, "[ALPHA] The number of mirror pods the kubelet will try to create (one per admitted static pod)"},
	"kubelet_node_name":                                  {gauge, "[ALPHA] The node's name. The count is always 1."},
	"kubelet_pleg_discard_events":                        {counter, "[ALPHA] The number of discard events in PLEG."},
	"kubelet_pleg_last_seen_seconds":                     {gauge, "[ALPHA] Timestamp in seconds when PLEG was last seen active."},
	"kubelet_pleg_relist_duration_seconds":               {histogram, "[ALPHA] Duration in seconds for relisting pods in PLEG."},
	"kubelet_pleg_relist_interval_seconds":               {histogram, "[ALPHA] Interval in seconds between relisting in PLEG."},
	"kubelet_pod_start_duration_seconds":                 {histogram, "[ALPHA] Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run"},
	"kubelet_pod_worker_duration_seconds":                {histogram, "[ALPHA] Duration in seconds to sync a single pod. Broken down by operation type: create, update, or sync"},
	"kubelet_pod_worker_start_duration_seconds":          {histogram, "[ALPHA] Duration in seconds from kubelet seeing a pod to starting a worker."},
	"kubelet_run_podsandbox_duration_seconds":            {histogram, "[ALPHA] Duration in seconds of the run_podsandbox operations. Broken down by RuntimeClass.Handler."},
	"kubelet_podcertificate_states":                      {gauge, "[ALPHA] Gauge vector reporting the number of pod certificate projected volume sources, faceted by signer_name and state."},
	"kubelet_running_containers":                         {gauge, "[ALPHA] Number of containers currently running"},
	"kubelet_running_pods":                               {gauge, "[ALPHA] Number of pods that have a running pod sandbox"},
	"kubelet_runtime_operations_duration_seconds":        {histogram, "[ALPHA] Duration in seconds of runtime operations. Broken down by operation type."},
	"kubelet_runtime_operations_errors_total":            {counter, "[ALPHA] Cumulative number of runtime operation errors by operation type."},
	"kubelet_runtime_operations_total":                   {counter, "[ALPHA] Cumulative number of runtime operations by operation type."},
	"kubelet_started_containers_errors_total":            {counter, "[ALPHA] Cumulative number of errors when starting containers"},
	"kubelet_started_containers_total":                   {counter, "[ALPHA] Cumulative number of containers started"},
	"kubelet_started_pods_errors_total":                  {counter, "[ALPHA] Cumulative number of errors when starting pods"},
	"kubelet_started_pods_total":                         {counter, "[ALPHA] Cumulative number of pods started"},
	"kubelet_volume_stats_available_bytes":               {gauge, "[ALPHA] Number of available bytes in the volume"},
	"kubelet_volume_stats_capacity_bytes":                {gauge, "[ALPHA] Capacity in bytes of the volume"},
	"kubelet_volume_stats_health_status_abnormal":        {gauge, "[ALPHA] Abnormal volume health status. The count is either 1 or 0. 1 indicates the volume is unhealthy, 0 indicates volume is healthy"},
	"kubelet_volume_stats_inodes":                        {gauge, "[ALPHA] Maximum number of inodes in the volume"},
	"kubelet_volume_stats_inodes_free":                   {gauge, "[ALPHA] Number of free inodes in the volume"},
	"kubelet_volume_stats_inodes_used":                   {gauge, "[ALPHA] Number of used inodes in the volume"},
	"kubelet_volume_stats_used_bytes":                    {gauge, "[ALPHA] Number of used bytes in the volume"},
	"kubelet_image_manager_ensure_image_requests_total":  {counter, "[ALPHA] Number of ensure-image requests processed by the kubelet."},
	"kubelet_terminated_containers_total":                {counter, "[ALPHA] Cumulative number of container terminations."},
	"kubelet_working_pods":                               {gauge, "[ALPHA] Number of pods the kubelet is actually running, broken down by lifecycle phase, whether the pod is desired, orphaned, or runtime only (also orphaned), and whether the pod is static. An orphaned pod has been removed from local configuration or force deleted in the API and consumes resources that are not otherwise visible."},
	"kubernetes_feature_enabled":                         {gauge, "[BETA] This metric records the data about the stage and enablement of a k8s feature."},
	"kubelet_sleep_action_terminated_early_total":        {counter, "[ALPHA] The number of times lifecycle sleep handler got terminated before it finishes"},
	"kubelet_started_user_namespaced_pods_total":         {counter, "[ALPHA] Cumulative number of pods with user namespaces started. This metric will only be collected on Linux."},
	"kubelet_started_user_namespaced_pods_errors_total":  {counter, "[ALPHA] Cumulative number of errors when starting pods with user namespaces. This metric will only be collected on Linux."},
	"kubelet_orphaned_runtime_pods_total":                {counter, "[ALPHA] Number of pods that have been detected in the container runtime without being already known to the pod worker. This typically indicates the kubelet was restarted while a pod was force deleted in the API or in the local configuration, which is unusual."},
	"kubelet_cpu_manager_pinning_requests_total":         {counter, "[ALPHA] The number of cpu core allocations which required pinning."},
	"kubelet_cpu_manager_pinning_errors_total":           {counter, "[ALPHA] The number of cpu core allocations which required pinning failed."},
	"kubelet_memory_manager_pinning_requests_total":      {counter, "[ALPHA] The number of memory pages allocations which required pinning."},
	"kubelet_memory_manager_pinning_errors_total":        {counter, "[ALPHA] The number of memory pages allocations which required pinning that failed."},
	"kubelet_restarted_pods_total":                       {counter, "[ALPHA] Number of pods that have been restarted because they were deleted and recreated with the same UID while the kubelet was watching them (common for static pods, extremely uncommon for API pods)"},
	"kubelet_cpu_manager_shared_pool_size_millicores":    {gauge, "[ALPHA] The size of the shared CPU pool for non-guaranteed QoS pods, in millicores."},
	"kubelet_cpu_manager_exclusive_cpu_allocation_count": {gauge, "[ALPHA] The total number of CPUs exclusively allocated to containers running on this node"},
	"kubelet_pod_status_sync_duration_seconds":           {histogram, "[ALPHA] Duration in seconds to sync a pod status update. Measures time from detection of a change to pod status until the API is successfully updated for that pod, even if multiple intevening changes to pod status occur."},
}
