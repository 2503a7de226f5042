package podspec

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// file is where a source of a volume puts something. A source that is a volume of its own
// has no name.
type file struct{ path, source string }

func (f file) String() string {
	if f.source == "" {
		return fmt.Sprintf("%q", f.path)
	}
	return fmt.Sprintf("%q (%s)", f.path, f.source)
}

// overlaps tells of files of a volume of which one stands in the other's place
// (warningsForOverlappingVirtualPaths).
func (w *warnings) overlaps(v *v1.Volume) {
	switch {
	case v.ConfigMap != nil:
		w.collisions(v.Name, fmt.Sprintf("ConfigMap %q", v.ConfigMap.Name), keyFiles(v.ConfigMap.Items, ""))
	case v.Secret != nil:
		w.collisions(v.Name, fmt.Sprintf("Secret %q", v.Secret.SecretName), keyFiles(v.Secret.Items, ""))
	case v.DownwardAPI != nil:
		w.collisions(v.Name, "DownwardAPI", fieldFiles(v.DownwardAPI.Items, ""))
	case v.Projected != nil:
		var all []file
		for i := range v.Projected.Sources {
			s := &v.Projected.Sources[i]
			if *s == (v1.VolumeProjection{}) {
				w.say("volume %q (Projected) has no sources provided", v.Name)
			}
			all = append(all, projectedFiles(s)...)
		}
		w.collisions(v.Name, "Projected", all)
	}
}

// collisions compares each file with those before it.
func (w *warnings) collisions(volume, sort string, files []file) {
	for i := range files {
		files[i].path = strings.TrimRight(files[i].path, "/")
	}
	for i, f := range files {
		for _, other := range files[:i] {
			if f.path != "" && other.path != "" && (within(f.path, other.path) || within(other.path, f.path)) {
				w.say("volume %q (%s): overlapping paths: %s with %s", volume, sort, f, other)
			}
		}
	}
}

// within reports whether a path is another, or below it.
func within(path, of string) bool { return strings.HasPrefix(path+"/", of+"/") }

// projectedFiles are those of a source of a projected volume.
func projectedFiles(s *v1.VolumeProjection) []file {
	switch {
	case s.ConfigMap != nil && s.ConfigMap.Items != nil:
		return keyFiles(s.ConfigMap.Items, fmt.Sprintf("ConfigMap %q", s.ConfigMap.Name))
	case s.Secret != nil && s.Secret.Items != nil:
		return keyFiles(s.Secret.Items, fmt.Sprintf("Secret %q", s.Secret.Name))
	case s.DownwardAPI != nil && s.DownwardAPI.Items != nil:
		return fieldFiles(s.DownwardAPI.Items, "DownwardAPI")
	case s.ServiceAccountToken != nil:
		return []file{{s.ServiceAccountToken.Path, "ServiceAccountToken"}}
	case s.ClusterTrustBundle != nil:
		name := s.ClusterTrustBundle.Name
		if name == nil {
			name = s.ClusterTrustBundle.SignerName
		}
		if name == nil {
			return nil // which is refused
		}
		return []file{{s.ClusterTrustBundle.Path, fmt.Sprintf("ClusterTrustBundle %q", *name)}}
	case s.PodCertificate != nil:
		return []file{
			{s.PodCertificate.CertificateChainPath, "PodCertificate chain"},
			{s.PodCertificate.KeyPath, "PodCertificate key"},
			{s.PodCertificate.CredentialBundlePath, "PodCertificate credential bundle"},
		}
	}
	return nil
}

func keyFiles(items []v1.KeyToPath, source string) []file {
	out := make([]file, 0, len(items))
	for _, i := range items {
		out = append(out, file{i.Path, source})
	}
	return out
}

func fieldFiles(items []v1.DownwardAPIVolumeFile, source string) []file {
	out := make([]file, 0, len(items))
	for _, i := range items {
		out = append(out, file{i.Path, source})
	}
	return out
}
