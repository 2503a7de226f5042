package fields

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/diff"
)

// GoNames is a value of an error as upstream prints it. Validation there sees
// internal types, whose JSON has the fields' Go names, and all of them; types of
// apimachinery are the same in both worlds. Values that look alike either way are
// returned as they are.
func GoNames(v any) any {
	switch reflect.ValueOf(v).Kind() {
	case reflect.Pointer, reflect.Struct, reflect.Slice, reflect.Map:
		return goNames{v}
	}
	return v
}

// Diff is what upstream says of two values of internal types that differ.
func Diff(old, now any) string { return diff.Diff(GoNames(old), GoNames(now)) }

// goNames marshals its value by the Go names of k8s.io/api's fields.
type goNames struct{ v any }

// MarshalJSON implements json.Marshaler.
func (g goNames) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	if err := writeGoNames(&b, reflect.ValueOf(g.v)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// apiTypes is the module whose types have internal twins.
const apiTypes = "k8s.io/api/"

func writeGoNames(b *bytes.Buffer, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			b.WriteString("null")
			return nil
		}
		return writeGoNames(b, v.Elem())
	case reflect.Struct:
		if !strings.HasPrefix(v.Type().PkgPath(), apiTypes) {
			break
		}
		b.WriteByte('{')
		if err := writeFields(b, v); err != nil {
			return err
		}
		b.WriteByte('}')
		return nil
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
			break
		}
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeGoNames(b, v.Index(i)); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case reflect.Map:
		if v.IsNil() || v.Type().Key().Kind() != reflect.String {
			break
		}
		return writeMap(b, v)
	}
	return writePlain(b, v.Interface())
}

// writeFields writes a struct's fields in the order of its internal twin; those of
// embedded structs are its own.
func writeFields(b *bytes.Buffer, v reflect.Value) error {
	order := internalFields(v.Type())
	for _, name := range order {
		f, ok := v.Type().FieldByName(name)
		if !ok { // what only internal types have is never set
			writeKey(b, name)
			b.WriteString("null")
			continue
		}
		if f.Anonymous {
			if err := writeFields(b, v.FieldByIndex(f.Index)); err != nil {
				return err
			}
			continue
		}
		writeKey(b, name)
		if spec, ok := v.Interface().(v1.PodSpec); ok && name == "SecurityContext" && spec.SecurityContext != nil {
			writePodSecurity(b, &spec)
			continue
		}
		if err := writeGoNames(b, v.FieldByIndex(f.Index)); err != nil {
			return err
		}
	}
	return nil
}

func writeKey(b *bytes.Buffer, name string) {
	if b.Bytes()[b.Len()-1] != '{' {
		b.WriteByte(',')
	}
	fmt.Fprintf(b, "%q:", name)
}

// writePodSecurity writes a pod's security context, which has what the host shares
// with the pod in the internal type.
func writePodSecurity(b *bytes.Buffer, s *v1.PodSpec) {
	share := func(v *bool) string {
		if v == nil {
			return "null"
		}
		return strconv.FormatBool(*v)
	}
	fmt.Fprintf(b, `{"HostNetwork":%t,"HostPID":%t,"HostIPC":%t,"ShareProcessNamespace":%s,"HostUsers":%s`,
		s.HostNetwork, s.HostPID, s.HostIPC, share(s.ShareProcessNamespace), share(s.HostUsers))
	_ = writeFields(b, reflect.ValueOf(*s.SecurityContext)) // it has nothing that JSON can't say
	b.WriteByte('}')
}

// internalFields are the names of a type's fields as its internal twin has them.
// Those of most types are the same; metadata is left out.
func internalFields(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[v1.PersistentVolumeSource]():
		return strings.Fields(`GCEPersistentDisk AWSElasticBlockStore HostPath Glusterfs NFS RBD Quobyte ISCSI FlexVolume Cinder
			CephFS FC Flocker AzureFile VsphereVolume AzureDisk PhotonPersistentDisk PortworxVolume ScaleIO Local StorageOS CSI`)
	case reflect.TypeFor[v1.VolumeSource]():
		return strings.Fields(`HostPath EmptyDir GCEPersistentDisk AWSElasticBlockStore GitRepo Secret NFS ISCSI Glusterfs
			PersistentVolumeClaim RBD Quobyte FlexVolume Cinder CephFS Flocker DownwardAPI FC AzureFile ConfigMap VsphereVolume
			AzureDisk PhotonPersistentDisk Projected PortworxVolume ScaleIO StorageOS CSI Ephemeral Image`)
	case reflect.TypeFor[v1.ServiceSpec]():
		return strings.Fields(`Type Ports Selector ClusterIP ClusterIPs IPFamilies IPFamilyPolicy ExternalName ExternalIPs
			LoadBalancerIP SessionAffinity SessionAffinityConfig LoadBalancerSourceRanges ExternalTrafficPolicy HealthCheckNodePort
			PublishNotReadyAddresses AllocateLoadBalancerNodePorts LoadBalancerClass InternalTrafficPolicy TrafficDistribution`)
	case reflect.TypeFor[v1.NodeSpec]():
		return strings.Fields(`PodCIDRs ProviderID Unschedulable Taints ConfigSource DoNotUseExternalID`)
	case reflect.TypeFor[v1.PodSpec]():
		return strings.Fields(`Volumes InitContainers Containers EphemeralContainers RestartPolicy TerminationGracePeriodSeconds
			ActiveDeadlineSeconds DNSPolicy NodeSelector ServiceAccountName AutomountServiceAccountToken NodeName SecurityContext
			ImagePullSecrets Hostname Subdomain SetHostnameAsFQDN Affinity SchedulerName Tolerations HostAliases PriorityClassName
			Priority PreemptionPolicy DNSConfig ReadinessGates RuntimeClassName Overhead EnableServiceLinks
			TopologySpreadConstraints OS SchedulingGates ResourceClaims Resources HostnameOverride SchedulingGroup`)
	case reflect.TypeFor[v1.PodSecurityContext]():
		return strings.Fields(`SELinuxOptions WindowsOptions RunAsUser RunAsGroup RunAsNonRoot SupplementalGroups
			SupplementalGroupsPolicy FSGroup FSGroupChangePolicy Sysctls SeccompProfile AppArmorProfile SELinuxChangePolicy`)
	case reflect.TypeFor[appsv1.DeploymentSpec]():
		return strings.Fields(`Replicas Selector Template Strategy MinReadySeconds RevisionHistoryLimit Paused RollbackTo
			ProgressDeadlineSeconds`)
	case reflect.TypeFor[batchv1.JobSpec]():
		return strings.Fields(`Parallelism Completions PodFailurePolicy SuccessPolicy ActiveDeadlineSeconds BackoffLimit
			BackoffLimitPerIndex MaxFailedIndexes Selector ManualSelector Template TTLSecondsAfterFinished CompletionMode Suspend
			PodReplacementPolicy ManagedBy`)
	case reflect.TypeFor[storagev1.CSIDriverSpec]():
		return strings.Fields(`AttachRequired FSGroupPolicy PodInfoOnMount VolumeLifecycleModes StorageCapacity TokenRequests
			RequiresRepublish SELinuxMount NodeAllocatableUpdatePeriodSeconds ServiceAccountTokenInSecrets
			PreventPodSchedulingIfMissing`)
	}
	var out []string
	for i := range t.NumField() {
		if f := t.Field(i); !f.Anonymous || strings.HasPrefix(f.Type.PkgPath(), apiTypes) {
			out = append(out, f.Name)
		}
	}
	return out
}

func writeMap(b *bytes.Buffer, v reflect.Value) error {
	keys := map[string]reflect.Value{}
	for _, k := range v.MapKeys() { //drydock:unordered sorted below
		keys[k.String()] = v.MapIndex(k)
	}
	b.WriteByte('{')
	for i, k := range SortedKeys(keys) {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writePlain(b, k); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := writeGoNames(b, keys[k]); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func writePlain(b *bytes.Buffer, v any) error {
	text, err := json.Marshal(v)
	b.Write(text)
	return err
}
