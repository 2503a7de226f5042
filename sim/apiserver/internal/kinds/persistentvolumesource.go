package kinds

import (
	"net"
	"path"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// setVolumeSourceDefaults is what pkg/apis/core/v1/zz_generated.defaults.go has for
// the sources of persistent volumes.
func setVolumeSourceDefaults(s *v1.PersistentVolumeSource) {
	switch {
	case s.HostPath != nil:
		fields.DefaultPtr(&s.HostPath.Type, v1.HostPathUnset)
	case s.RBD != nil:
		fields.Default(&s.RBD.RBDPool, "rbd")
		fields.Default(&s.RBD.RadosUser, "admin")
		fields.Default(&s.RBD.Keyring, "/etc/ceph/keyring")
	case s.ISCSI != nil:
		fields.Default(&s.ISCSI.ISCSIInterface, "default")
	case s.AzureDisk != nil:
		fields.DefaultPtr(&s.AzureDisk.CachingMode, v1.AzureDataDiskCachingReadWrite)
		fields.DefaultPtr(&s.AzureDisk.FSType, "ext4")
		fields.DefaultPtr(&s.AzureDisk.ReadOnly, false)
		fields.DefaultPtr(&s.AzureDisk.Kind, v1.AzureSharedBlobDisk)
	case s.ScaleIO != nil:
		fields.Default(&s.ScaleIO.StorageMode, "ThinProvisioned")
		fields.Default(&s.ScaleIO.FSType, "xfs")
	}
}

// takesMountOptions reports whether a source mounts by options (checkMountOption of
// pkg/volume/validation).
func takesMountOptions(s *v1.PersistentVolumeSource) bool {
	return s.GCEPersistentDisk != nil || s.AWSElasticBlockStore != nil || s.Glusterfs != nil || s.NFS != nil || s.RBD != nil ||
		s.Quobyte != nil || s.ISCSI != nil || s.Cinder != nil || s.CephFS != nil || s.AzureFile != nil || s.VsphereVolume != nil ||
		s.AzureDisk != nil || s.PhotonPersistentDisk != nil
}

// validateVolumeSources checks where a volume is: in one place, of which the first
// is looked at.
func validateVolumeSources(s *v1.PersistentVolumeSpec, name string, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	n := 0
	for _, src := range []struct {
		set   bool
		field string
		check func() field.ErrorList
	}{
		{s.HostPath != nil, "hostPath", func() field.ErrorList { return validateHostPath(s.HostPath, p.Child("hostPath")) }},
		{s.GCEPersistentDisk != nil, "gcePersistentDisk", func() field.ErrorList {
			q := p.Child("persistentDisk")
			return append(required(q, "pdName", s.GCEPersistentDisk.PDName), validatePartition(s.GCEPersistentDisk.Partition, q)...)
		}},
		{s.AWSElasticBlockStore != nil, "awsElasticBlockStore", func() field.ErrorList {
			q := p.Child("awsElasticBlockStore")
			return append(required(q, "volumeID", s.AWSElasticBlockStore.VolumeID), validatePartition(s.AWSElasticBlockStore.Partition, q)...)
		}},
		{s.Glusterfs != nil, "glusterfs", func() field.ErrorList { return validateGlusterfs(s.Glusterfs, p.Child("glusterfs")) }},
		{s.Flocker != nil, "flocker", func() field.ErrorList { return validateFlocker(s.Flocker, p.Child("flocker")) }},
		{s.NFS != nil, "nfs", func() field.ErrorList {
			q := p.Child("nfs")
			errs := required(q, "server", s.NFS.Server, "path", s.NFS.Path)
			if !path.IsAbs(s.NFS.Path) {
				errs = append(errs, field.Invalid(q.Child("path"), s.NFS.Path, "must be an absolute path"))
			}
			return errs
		}},
		{s.RBD != nil, "rbd", func() field.ErrorList {
			return required(p.Child("rbd"), "monitors", strings.Join(s.RBD.CephMonitors, ","), "image", s.RBD.RBDImage)
		}},
		{s.Quobyte != nil, "quobyte", func() field.ErrorList { return validateQuobyte(s.Quobyte, p.Child("quobyte")) }},
		{s.CephFS != nil, "cephFS", func() field.ErrorList {
			return required(p.Child("cephfs"), "monitors", strings.Join(s.CephFS.Monitors, ","))
		}},
		{s.ISCSI != nil, "iscsi", func() field.ErrorList { return validateISCSI(s.ISCSI, name, p.Child("iscsi")) }},
		{s.Cinder != nil, "cinder", func() field.ErrorList {
			q := p.Child("cinder")
			errs := required(q, "volumeID", s.Cinder.VolumeID)
			if r := s.Cinder.SecretRef; r != nil {
				errs = append(errs, required(q.Child("secretRef"), "name", r.Name, "namespace", r.Namespace)...)
			}
			return errs
		}},
		{s.FC != nil, "fc", func() field.ErrorList { return validateFC(s.FC, p.Child("fc")) }},
		{s.FlexVolume != nil, "flexVolume", func() field.ErrorList { return validateFlexVolume(s.FlexVolume, p.Child("flexVolume")) }},
		{s.AzureFile != nil, "azureFile", func() field.ErrorList {
			q := p.Child("azureFile")
			errs := required(q, "secretName", s.AzureFile.SecretName, "shareName", s.AzureFile.ShareName)
			if ns := s.AzureFile.SecretNamespace; ns != nil {
				errs = append(errs, required(q, "secretNamespace", *ns)...)
			}
			return errs
		}},
		{s.VsphereVolume != nil, "vsphereVolume", func() field.ErrorList {
			return required(p.Child("vsphereVolume"), "volumePath", s.VsphereVolume.VolumePath)
		}},
		{s.PhotonPersistentDisk != nil, "photonPersistentDisk", func() field.ErrorList {
			return required(p.Child("photonPersistentDisk"), "pdID", s.PhotonPersistentDisk.PdID)
		}},
		{s.PortworxVolume != nil, "portworxVolume", func() field.ErrorList {
			return required(p.Child("portworxVolume"), "volumeID", s.PortworxVolume.VolumeID)
		}},
		{s.AzureDisk != nil, "azureDisk", func() field.ErrorList { return validateAzureDisk(s.AzureDisk, p.Child("azureDisk")) }},
		{s.ScaleIO != nil, "scaleIO", func() field.ErrorList {
			return required(p.Child("scaleIO"), "gateway", s.ScaleIO.Gateway, "system", s.ScaleIO.System, "volumeName", s.ScaleIO.VolumeName)
		}},
		{s.Local != nil, "local", func() field.ErrorList {
			q := p.Child("local")
			errs := required(q, "path", s.Local.Path)
			errs = append(errs, noBacksteps(s.Local.Path, q.Child("path"))...)
			if s.NodeAffinity == nil { // it is on one node
				errs = append(errs, field.Required(p.Child("nodeAffinity"), "Local volume requires node affinity"))
			}
			return errs
		}},
		{s.StorageOS != nil, "storageos", func() field.ErrorList { return validateStorageOS(s.StorageOS, p.Child("storageos")) }},
		{s.CSI != nil, "csi", func() field.ErrorList { return validateCSISource(s.CSI, p.Child("csi")) }},
	} {
		if !src.set {
			continue
		}
		n++
		if n > 1 && src.field != "flexVolume" { // which upstream has beside any other
			errs = append(errs, field.Forbidden(p.Child(src.field), "may not specify more than 1 volume type"))
			continue
		}
		errs = append(errs, src.check()...)
	}
	if n == 0 {
		errs = append(errs, field.Required(p, "must specify a volume type"))
	}
	return errs
}

// required requires texts: pairs of a field's name and what is in it.
func required(p *field.Path, pairs ...string) field.ErrorList {
	var errs field.ErrorList
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			errs = append(errs, field.Required(p.Child(pairs[i]), ""))
		}
	}
	return errs
}

// noBacksteps refuses a path that leads out of its place (validatePathNoBacksteps).
func noBacksteps(v string, p *field.Path) field.ErrorList {
	if slices.Contains(strings.Split(v, "/"), "..") {
		return field.ErrorList{field.Invalid(p, v, "must not contain '..'")}
	}
	return nil
}

// validateBasicQuantity refuses a negative quantity (validateBasicResource).
func validateBasicQuantity(q resource.Quantity, p *field.Path) field.ErrorList {
	if q.Value() < 0 {
		return field.ErrorList{field.Invalid(p, q.Value(), "must be a valid resource quantity")}
	}
	return nil
}

func validatePartition(n int32, p *field.Path) field.ErrorList {
	if n < 0 || n > 255 {
		return field.ErrorList{field.Invalid(p.Child("partition"), n, validation.InclusiveRangeError(1, 255))}
	}
	return nil
}

func validateHostPath(h *v1.HostPathVolumeSource, p *field.Path) field.ErrorList {
	if h.Path == "" {
		return required(p, "path", "")
	}
	errs := noBacksteps(h.Path, p.Child("path"))
	if h.Type != nil {
		errs = append(errs, fields.Supported(*h.Type, p.Child("type"), v1.HostPathUnset, v1.HostPathBlockDev, v1.HostPathCharDev,
			v1.HostPathDirectory, v1.HostPathDirectoryOrCreate, v1.HostPathFile, v1.HostPathFileOrCreate, v1.HostPathSocket)...)
	}
	return errs
}

func validateGlusterfs(g *v1.GlusterfsPersistentVolumeSource, p *field.Path) field.ErrorList {
	errs := required(p, "endpoints", g.EndpointsName, "path", g.Path)
	if ns := g.EndpointsNamespace; ns != nil {
		q := p.Child("endpointsNamespace")
		if *ns == "" {
			return append(errs, field.Invalid(q, *ns, "if the endpointnamespace is set, it must be a valid namespace name"))
		}
		errs = append(errs, fields.Invalid(q, *ns, apivalidation.ValidateNamespaceName(*ns, false))...)
	}
	return errs
}

func validateFlocker(f *v1.FlockerVolumeSource, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case f.DatasetName == "" && f.DatasetUUID == "":
		errs = append(errs, field.Required(p, "one of datasetName and datasetUUID is required"))
	case f.DatasetName != "" && f.DatasetUUID != "":
		errs = append(errs, field.Invalid(p, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
	}
	if strings.Contains(f.DatasetName, "/") {
		errs = append(errs, field.Invalid(p.Child("datasetName"), f.DatasetName, "must not contain '/'"))
	}
	return errs
}

func validateQuobyte(q *v1.QuobyteVolumeSource, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	const pairs = "must be a host:port pair or multiple pairs separated by commas"
	switch {
	case q.Registry == "":
		errs = append(errs, field.Required(p.Child("registry"), pairs))
	case len(q.Tenant) >= 65:
		errs = append(errs, field.Required(p.Child("tenant"), "must be a UUID and may not exceed a length of 64 characters"))
	default:
		for _, pair := range strings.Split(q.Registry, ",") {
			if _, _, err := net.SplitHostPort(pair); err != nil {
				errs = append(errs, field.Invalid(p.Child("registry"), q.Registry, pairs))
			}
		}
	}
	return append(errs, required(p, "volume", q.Volume)...)
}

func validateISCSI(s *v1.ISCSIPersistentVolumeSource, name string, p *field.Path) field.ErrorList {
	errs := required(p, "targetPortal", s.TargetPortal)
	if s.InitiatorName != nil && len(name+":"+s.TargetPortal) > 64 {
		errs = append(errs, field.Invalid(p.Child("targetportal"), s.TargetPortal, "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified."))
	}
	errs = append(errs, required(p, "iqn", s.IQN)...)
	if s.IQN != "" {
		errs = append(errs, validateQualifiedISCSI(s.IQN, p.Child("iqn"))...)
	}
	if s.Lun < 0 || s.Lun > 255 {
		errs = append(errs, field.Invalid(p.Child("lun"), s.Lun, validation.InclusiveRangeError(0, 255)))
	}
	if (s.DiscoveryCHAPAuth || s.SessionCHAPAuth) && s.SecretRef == nil {
		errs = append(errs, field.Required(p.Child("secretRef"), ""))
	}
	if s.SecretRef != nil {
		errs = append(errs, required(p.Child("secretRef"), "name", s.SecretRef.Name)...)
	}
	if s.InitiatorName != nil {
		errs = append(errs, validateQualifiedISCSI(*s.InitiatorName, p.Child("initiatorname"))...)
	}
	return errs
}

// validateQualifiedISCSI checks a name of iSCSI in one of its three forms.
func validateQualifiedISCSI(name string, p *field.Path) field.ErrorList {
	for prefix, form := range map[string]string{ //drydock:unordered one of them fits at most
		"iqn": `iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$`,
		"eui": `^eui.[[:alnum:]]{16}$`,
		"naa": `^naa.[[:alnum:]]{32}$`,
	} {
		if strings.HasPrefix(name, prefix) && regexp.MustCompile(form).MatchString(name) {
			return nil
		}
	}
	return field.ErrorList{field.Invalid(p, name, "must be valid format")}
}

func validateFC(s *v1.FCVolumeSource, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	targets, lun := p.Child("targetWWNs"), p.Child("lun")
	switch {
	case len(s.TargetWWNs) == 0 && len(s.WWIDs) == 0:
		errs = append(errs, field.Required(targets, "must specify either targetWWNs or wwids, but not both"))
	case len(s.TargetWWNs) > 0 && len(s.WWIDs) > 0:
		errs = append(errs, field.Invalid(targets, s.TargetWWNs, "targetWWNs and wwids can not be specified simultaneously"))
	}
	switch {
	case len(s.TargetWWNs) == 0:
	case s.Lun == nil:
		errs = append(errs, field.Required(lun, "lun is required if targetWWNs is specified"))
	case *s.Lun < 0 || *s.Lun > 255:
		errs = append(errs, field.Invalid(lun, s.Lun, validation.InclusiveRangeError(0, 255)))
	}
	return errs
}

// validateFlexVolume keeps options of Kubernetes' own to Kubernetes.
func validateFlexVolume(s *v1.FlexPersistentVolumeSource, p *field.Path) field.ErrorList {
	errs := required(p, "driver", s.Driver)
	for _, k := range fields.SortedKeys(s.Options) {
		domain, _, _ := strings.Cut(k, "/")
		domain = "." + strings.ToLower(domain)
		if strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io") {
			errs = append(errs, field.Invalid(p.Child("options").Key(k), k, "kubernetes.io and k8s.io namespaces are reserved"))
		}
	}
	return errs
}

func validateAzureDisk(s *v1.AzureDiskVolumeSource, p *field.Path) field.ErrorList {
	errs := required(p, "diskName", s.DiskName, "diskURI", s.DataDiskURI)
	if s.CachingMode != nil {
		errs = append(errs, fields.Supported(*s.CachingMode, p.Child("cachingMode"), v1.AzureDataDiskCachingNone, v1.AzureDataDiskCachingReadOnly, v1.AzureDataDiskCachingReadWrite)...)
	}
	if s.Kind == nil {
		return errs
	}
	errs = append(errs, fields.Supported(*s.Kind, p.Child("kind"), v1.AzureDedicatedBlobDisk, v1.AzureManagedDisk, v1.AzureSharedBlobDisk)...)
	prefix, form := "https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
	if *s.Kind == v1.AzureManagedDisk {
		prefix, form = "/subscriptions/", "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
	}
	if !strings.HasPrefix(s.DataDiskURI, prefix) {
		errs = append(errs, field.NotSupported(p.Child("diskURI"), s.DataDiskURI, []string{form}))
	}
	return errs
}

func validateStorageOS(s *v1.StorageOSPersistentVolumeSource, p *field.Path) field.ErrorList {
	errs := required(p, "volumeName", s.VolumeName)
	if s.VolumeName != "" {
		errs = append(errs, fields.DNSLabel(s.VolumeName, p.Child("volumeName"))...)
	}
	if s.VolumeNamespace != "" {
		errs = append(errs, fields.DNSLabel(s.VolumeNamespace, p.Child("volumeNamespace"))...)
	}
	if r := s.SecretRef; r != nil {
		errs = append(errs, required(p.Child("secretRef"), "name", r.Name, "namespace", r.Namespace)...)
	}
	return errs
}

func validateCSISource(s *v1.CSIPersistentVolumeSource, p *field.Path) field.ErrorList {
	errs := validateDriverName(s.Driver, p.Child("driver"))
	errs = append(errs, required(p, "volumeHandle", s.VolumeHandle)...)
	for _, r := range []struct {
		field string
		ref   *v1.SecretReference
	}{
		{"controllerPublishSecretRef", s.ControllerPublishSecretRef},
		{"controllerExpandSecretRef", s.ControllerExpandSecretRef},
		{"nodePublishSecretRef", s.NodePublishSecretRef},
		{"nodeExpandSecretRef", s.NodeExpandSecretRef},
	} {
		if r.ref == nil {
			continue
		}
		q := p.Child(r.field)
		errs = append(errs, required(q, "name", r.ref.Name)...)
		if r.ref.Name != "" {
			errs = append(errs, fields.DNSName(r.ref.Name, q.Child("name"))...)
		}
		errs = append(errs, required(q, "namespace", r.ref.Namespace)...)
		if r.ref.Namespace != "" {
			errs = append(errs, fields.DNSLabel(r.ref.Namespace, q.Child("namespace"))...)
		}
	}
	return errs
}

// validateDriverName checks the name of a driver of CSI (ValidateCSIDriverName).
func validateDriverName(name string, p *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	var errs field.ErrorList
	if len(name) > 63 {
		errs = append(errs, field.TooLong(p, "", 63))
	}
	return append(errs, fields.Invalid(p, name, validation.IsDNS1123Subdomain(strings.ToLower(name)))...)
}
