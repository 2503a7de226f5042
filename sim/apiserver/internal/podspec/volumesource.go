package podspec

import (
	"fmt"
	"net"
	"regexp"
	"strings"

	v1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// source is one of the sources that a volume may have.
type source struct {
	name  string
	set   bool
	check func(path *field.Path) field.ErrorList
}

// sources are all of a volume's, in upstream's order: the first that is set is looked
// into. Most are for file systems that nothing here mounts; their rules are few.
// Some have paths of their own; at is the volume's.
func (c *checker) sources(v *v1.Volume, at *field.Path) []source {
	s := &v.VolumeSource
	secretName := func(r *v1.LocalObjectReference, path *field.Path) field.ErrorList {
		if r == nil {
			return nil
		}
		return required(r.Name, path.Child("secretRef", "name"))
	}
	return []source{
		{"emptyDir", s.EmptyDir != nil, func(p *field.Path) field.ErrorList { return validateEmptyDir(s.EmptyDir, p) }},
		{"hostPath", s.HostPath != nil, func(p *field.Path) field.ErrorList { return validateHostPath(s.HostPath, p) }},
		{"gitRepo", s.GitRepo != nil, func(p *field.Path) field.ErrorList {
			return append(required(s.GitRepo.Repository, p.Child("repository")), descendingPath(s.GitRepo.Directory, p.Child("directory"))...)
		}},
		{"gcePersistentDisk", s.GCEPersistentDisk != nil, func(*field.Path) field.ErrorList {
			return validateDisk(s.GCEPersistentDisk.PDName, s.GCEPersistentDisk.Partition, at.Child("persistentDisk"), "pdName")
		}},
		{"awsElasticBlockStore", s.AWSElasticBlockStore != nil, func(p *field.Path) field.ErrorList {
			return validateDisk(s.AWSElasticBlockStore.VolumeID, s.AWSElasticBlockStore.Partition, p, "volumeID")
		}},
		{"secret", s.Secret != nil, func(*field.Path) field.ErrorList {
			return c.validateCommonSource(&v1.VolumeSource{Secret: s.Secret}, at)
		}},
		{"nfs", s.NFS != nil, func(p *field.Path) field.ErrorList { return validateNFS(s.NFS, p) }},
		{"iscsi", s.ISCSI != nil, func(p *field.Path) field.ErrorList {
			return append(validateISCSI(s.ISCSI, p), iscsiVolumeName(s.ISCSI, v.Name, at.Child("name"))...)
		}},
		{"glusterfs", s.Glusterfs != nil, func(p *field.Path) field.ErrorList {
			return append(required(s.Glusterfs.EndpointsName, p.Child("endpoints")), required(s.Glusterfs.Path, p.Child("path"))...)
		}},
		{"flocker", s.Flocker != nil, func(p *field.Path) field.ErrorList { return validateFlocker(s.Flocker, p) }},
		{"persistentVolumeClaim", s.PersistentVolumeClaim != nil, func(p *field.Path) field.ErrorList {
			return required(s.PersistentVolumeClaim.ClaimName, p.Child("claimName"))
		}},
		{"rbd", s.RBD != nil, func(p *field.Path) field.ErrorList {
			return append(requiredList(s.RBD.CephMonitors, p.Child("monitors")), required(s.RBD.RBDImage, p.Child("image"))...)
		}},
		{"cinder", s.Cinder != nil, func(p *field.Path) field.ErrorList {
			return append(required(s.Cinder.VolumeID, p.Child("volumeID")), secretName(s.Cinder.SecretRef, p)...)
		}},
		{"cephFS", s.CephFS != nil, func(*field.Path) field.ErrorList {
			return requiredList(s.CephFS.Monitors, at.Child("cephfs", "monitors"))
		}},
		{"quobyte", s.Quobyte != nil, func(p *field.Path) field.ErrorList { return validateQuobyte(s.Quobyte, p) }},
		{"downwardAPI", s.DownwardAPI != nil, func(p *field.Path) field.ErrorList {
			errs := validateMode(s.DownwardAPI.DefaultMode, p.Child("defaultMode"))
			for i := range s.DownwardAPI.Items {
				errs = append(errs, validateDownwardItem(&s.DownwardAPI.Items[i], p)...)
			}
			return errs
		}},
		{"fc", s.FC != nil, func(p *field.Path) field.ErrorList { return validateFC(s.FC, p) }},
		{"flexVolume", s.FlexVolume != nil, func(p *field.Path) field.ErrorList {
			return append(required(s.FlexVolume.Driver, p.Child("driver")), foreignOptions(s.FlexVolume.Options, p.Child("options"))...)
		}},
		{"configMap", s.ConfigMap != nil, func(*field.Path) field.ErrorList {
			return c.validateCommonSource(&v1.VolumeSource{ConfigMap: s.ConfigMap}, at)
		}},
		{"azureFile", s.AzureFile != nil, func(p *field.Path) field.ErrorList {
			return append(required(s.AzureFile.SecretName, p.Child("secretName")), required(s.AzureFile.ShareName, p.Child("shareName"))...)
		}},
		{"vsphereVolume", s.VsphereVolume != nil, func(p *field.Path) field.ErrorList {
			return required(s.VsphereVolume.VolumePath, p.Child("volumePath"))
		}},
		{"photonPersistentDisk", s.PhotonPersistentDisk != nil, func(p *field.Path) field.ErrorList { return required(s.PhotonPersistentDisk.PdID, p.Child("pdID")) }},
		{"portworxVolume", s.PortworxVolume != nil, func(p *field.Path) field.ErrorList { return required(s.PortworxVolume.VolumeID, p.Child("volumeID")) }},
		{"azureDisk", s.AzureDisk != nil, func(p *field.Path) field.ErrorList { return validateAzureDisk(s.AzureDisk, p) }},
		{"storageos", s.StorageOS != nil, func(p *field.Path) field.ErrorList {
			return append(validateStorageOS(s.StorageOS, p), secretName(s.StorageOS.SecretRef, p)...)
		}},
		{"projected", s.Projected != nil, func(p *field.Path) field.ErrorList { return c.validateProjected(s.Projected, p) }},
		{"scaleIO", s.ScaleIO != nil, func(p *field.Path) field.ErrorList {
			errs := append(required(s.ScaleIO.Gateway, p.Child("gateway")), required(s.ScaleIO.System, p.Child("system"))...)
			return append(errs, required(s.ScaleIO.VolumeName, p.Child("volumeName"))...)
		}},
		{"csi", s.CSI != nil, func(p *field.Path) field.ErrorList { return validateCSI(s.CSI, p) }},
		{"ephemeral", s.Ephemeral != nil, func(p *field.Path) field.ErrorList {
			return append(validateEphemeralSource(v.Ephemeral, p), c.madeClaimName(v, at.Child("name"))...)
		}},
		{"image", s.Image != nil, func(p *field.Path) field.ErrorList { return c.validateImage(s.Image, p) }},
	}
}

// requiredList requires a list to have an entry.
func requiredList(list []string, path *field.Path) field.ErrorList {
	if len(list) > 0 {
		return nil
	}
	return field.ErrorList{field.Required(path, "")}
}

func validateHostPath(h *v1.HostPathVolumeSource, path *field.Path) field.ErrorList {
	if h.Path == "" {
		return required("", path.Child("path"))
	}
	errs := noBacksteps(h.Path, path.Child("path"))
	if h.Type == nil { // the kubelet checks what is there when it mounts
		return errs
	}
	return append(errs, fields.Supported(*h.Type, path.Child("type"), v1.HostPathUnset, v1.HostPathBlockDev, v1.HostPathCharDev, v1.HostPathDirectory,
		v1.HostPathDirectoryOrCreate, v1.HostPathFile, v1.HostPathFileOrCreate, v1.HostPathSocket)...)
}

// validateDisk checks a disk of a cloud, and which part of it is meant.
func validateDisk(id string, partition int32, path *field.Path, name string) field.ErrorList {
	errs := required(id, path.Child(name))
	if partition < 0 || partition > 255 {
		errs = append(errs, field.Invalid(path.Child("partition"), partition, validation.InclusiveRangeError(1, 255)))
	}
	return errs
}

func validateNFS(n *v1.NFSVolumeSource, path *field.Path) field.ErrorList {
	errs := append(required(n.Server, path.Child("server")), required(n.Path, path.Child("path"))...)
	if !strings.HasPrefix(n.Path, "/") {
		errs = append(errs, field.Invalid(path.Child("path"), n.Path, "must be an absolute path"))
	}
	return errs
}

// maxISCSIName is that of a portal with its volume's name, where the initiator is named.
const maxISCSIName = 64

func validateISCSI(s *v1.ISCSIVolumeSource, path *field.Path) field.ErrorList {
	errs := required(s.TargetPortal, path.Child("targetPortal"))
	if s.IQN == "" {
		errs = append(errs, field.Required(path.Child("iqn"), ""))
	} else {
		errs = append(errs, iscsiName(s.IQN, path.Child("iqn"))...)
	}
	if s.Lun < 0 || s.Lun > 255 {
		errs = append(errs, field.Invalid(path.Child("lun"), s.Lun, validation.InclusiveRangeError(0, 255)))
	}
	if (s.DiscoveryCHAPAuth || s.SessionCHAPAuth) && s.SecretRef == nil {
		errs = append(errs, field.Required(path.Child("secretRef"), ""))
	}
	if s.InitiatorName != nil {
		errs = append(errs, iscsiName(*s.InitiatorName, path.Child("initiatorname"))...)
	}
	return errs
}

// iscsiVolumeName bounds the name of the interface that is made for a named initiator.
func iscsiVolumeName(s *v1.ISCSIVolumeSource, volume string, path *field.Path) field.ErrorList {
	if s.InitiatorName == nil || len(volume+":"+s.TargetPortal) <= maxISCSIName {
		return nil
	}
	return field.ErrorList{field.Invalid(path, volume, "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.")}
}

// iscsiName checks a name in one of iSCSI's three formats.
func iscsiName(name string, path *field.Path) field.ErrorList {
	for prefix, format := range map[string]string{ //drydock:unordered one fits
		"iqn": `iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$`,
		"eui": `^eui.[[:alnum:]]{16}$`,
		"naa": `^naa.[[:alnum:]]{32}$`,
	} {
		switch {
		case !strings.HasPrefix(name, prefix):
		case regexp.MustCompile(format).MatchString(name):
			return nil
		default:
			return field.ErrorList{field.Invalid(path, name, "must be valid format")}
		}
	}
	return field.ErrorList{field.Invalid(path, name, "must be valid format starting with iqn, eui, or naa")}
}

func validateFlocker(f *v1.FlockerVolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case f.DatasetName == "" && f.DatasetUUID == "":
		errs = append(errs, field.Required(path, "one of datasetName and datasetUUID is required"))
	case f.DatasetName != "" && f.DatasetUUID != "":
		errs = append(errs, field.Invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
	}
	if strings.Contains(f.DatasetName, "/") {
		errs = append(errs, field.Invalid(path.Child("datasetName"), f.DatasetName, "must not contain '/'"))
	}
	return errs
}

func validateQuobyte(q *v1.QuobyteVolumeSource, path *field.Path) field.ErrorList {
	const pairs = "must be a host:port pair or multiple pairs separated by commas"
	var errs field.ErrorList
	switch {
	case q.Registry == "":
		errs = append(errs, field.Required(path.Child("registry"), pairs))
	case len(q.Tenant) >= 65:
		errs = append(errs, field.Required(path.Child("tenant"), "must be a UUID and may not exceed a length of 64 characters"))
	default:
		for _, pair := range strings.Split(q.Registry, ",") {
			if _, _, err := net.SplitHostPort(pair); err != nil {
				errs = append(errs, field.Invalid(path.Child("registry"), q.Registry, pairs))
			}
		}
	}
	return append(errs, required(q.Volume, path.Child("volume"))...)
}

func validateFC(f *v1.FCVolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case len(f.TargetWWNs)+len(f.WWIDs) == 0:
		return field.ErrorList{field.Required(path.Child("targetWWNs"), "must specify either targetWWNs or wwids, but not both")}
	case len(f.TargetWWNs) == 0:
		return nil
	case len(f.WWIDs) > 0:
		errs = append(errs, field.Invalid(path.Child("targetWWNs"), f.TargetWWNs, "targetWWNs and wwids can not be specified simultaneously"))
	}
	if f.Lun == nil {
		errs = append(errs, field.Required(path.Child("lun"), "lun is required if targetWWNs is specified"))
	} else if *f.Lun < 0 || *f.Lun > 255 {
		errs = append(errs, field.Invalid(path.Child("lun"), *f.Lun, validation.InclusiveRangeError(0, 255)))
	}
	return errs
}

// foreignOptions keeps the options of a driver out of Kubernetes' own namespaces.
func foreignOptions(options map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, k := range fields.SortedKeys(options) {
		ns, _, _ := strings.Cut(k, "/")
		ns = "." + strings.ToLower(ns)
		if strings.HasSuffix(ns, ".kubernetes.io") || strings.HasSuffix(ns, ".k8s.io") {
			errs = append(errs, field.Invalid(path.Key(k), k, "kubernetes.io and k8s.io namespaces are reserved"))
		}
	}
	return errs
}

func validateAzureDisk(a *v1.AzureDiskVolumeSource, path *field.Path) field.ErrorList {
	errs := append(required(a.DiskName, path.Child("diskName")), required(a.DataDiskURI, path.Child("diskURI"))...)
	if m := a.CachingMode; m != nil {
		errs = append(errs, fields.Supported(*m, path.Child("cachingMode"), v1.AzureDataDiskCachingNone, v1.AzureDataDiskCachingReadOnly, v1.AzureDataDiskCachingReadWrite)...)
	}
	if a.Kind == nil {
		return errs
	}
	errs = append(errs, fields.Supported(*a.Kind, path.Child("kind"), v1.AzureDedicatedBlobDisk, v1.AzureManagedDisk, v1.AzureSharedBlobDisk)...)
	prefix, format := "https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
	if *a.Kind == v1.AzureManagedDisk {
		prefix, format = "/subscriptions/", "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
	}
	if !strings.HasPrefix(a.DataDiskURI, prefix) {
		errs = append(errs, field.NotSupported(path.Child("diskURI"), a.DataDiskURI, []string{format}))
	}
	return errs
}

func validateStorageOS(s *v1.StorageOSVolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.VolumeName == "" {
		errs = append(errs, field.Required(path.Child("volumeName"), ""))
	} else {
		errs = append(errs, fields.DNSLabel(s.VolumeName, path.Child("volumeName"))...)
	}
	if s.VolumeNamespace != "" {
		errs = append(errs, fields.DNSLabel(s.VolumeNamespace, path.Child("volumeNamespace"))...)
	}
	return errs
}

// maxDriverName is that of a CSI driver.
const maxDriverName = 63

func validateCSI(c *v1.CSIVolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	driver := path.Child("driver")
	if c.Driver == "" {
		errs = append(errs, field.Required(driver, ""))
	} else {
		if len(c.Driver) > maxDriverName {
			errs = append(errs, field.TooLong(driver, "", maxDriverName))
		}
		errs = append(errs, fields.Invalid(driver, c.Driver, validation.IsDNS1123Subdomain(strings.ToLower(c.Driver)))...)
	}
	if r := c.NodePublishSecretRef; r != nil && r.Name == "" {
		errs = append(errs, field.Required(path.Child("nodePublishSecretRef", "name"), ""))
	} else if r != nil {
		errs = append(errs, fields.DNSName(r.Name, path.Child("name"))...) // upstream's path
	}
	return errs
}

// validateImage checks an image as a volume. Some tools fill a template's in later.
func (c *checker) validateImage(s *v1.ImageVolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.pod != nil {
		errs = append(errs, required(s.Reference, path.Child("reference"))...)
	}
	return append(errs, fields.OneOf(s.PullPolicy, path.Child("pullPolicy"), v1.PullAlways, v1.PullIfNotPresent, v1.PullNever)...)
}

// validateEphemeralSource is validateEphemeralVolumeSource: the template of a claim that
// is the pod's own.
func validateEphemeralSource(e *v1.EphemeralVolumeSource, path *field.Path) field.ErrorList {
	t, p := e.VolumeClaimTemplate, path.Child("volumeClaimTemplate")
	if t == nil {
		return field.ErrorList{field.Required(p, "")}
	}
	return append(ValidateTemplateMeta(&t.ObjectMeta, p.Child("metadata")), ValidateClaim(&t.Spec, p.Child("spec"))...)
}

// madeClaimName checks the name that a volume's claim will have.
func (c *checker) madeClaimName(v *v1.Volume, path *field.Path) field.ErrorList {
	if c.pod == nil || c.pod.Name == "" || v.Name == "" {
		return nil
	}
	var errs field.ErrorList
	name := c.pod.Name + "-" + v.Name
	for _, text := range apivalidation.NameIsDNSSubdomain(name, false) {
		errs = append(errs, field.Invalid(path, v.Name, fmt.Sprintf("PVC name %q: %v", name, text)))
	}
	return errs
}
