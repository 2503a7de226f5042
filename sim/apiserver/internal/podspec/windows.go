package podspec

import (
	"fmt"
	"regexp"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// validateOS checks that a pod asks for nothing that its operating system doesn't have
// (validateOS, validateLinux, validateWindows).
func (c *checker) validateOS(path *field.Path) field.ErrorList {
	switch os := c.spec.OS; {
	case os == nil:
		return nil
	case os.Name == "":
		return field.ErrorList{field.Required(path.Child("os", "name"), "")}
	case os.Name == v1.Linux:
		return c.noWindowsOptions(path)
	case os.Name == v1.Windows:
		return c.noLinuxOptions(path)
	default:
		return fields.Supported(os.Name, path.Child("os"), v1.Linux, v1.Windows)
	}
}

// noWindowsOptions refuses what only Windows has.
func (c *checker) noWindowsOptions(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	const why = "windows options cannot be set for a linux pod"
	if sc := c.spec.SecurityContext; sc != nil && sc.WindowsOptions != nil {
		errs = append(errs, field.Forbidden(path.Child("securityContext", "windowsOptions"), why))
	}
	eachContainer(c.spec, path, func(ctr *v1.Container, p *field.Path) {
		if sc := ctr.SecurityContext; sc != nil && sc.WindowsOptions != nil {
			errs = append(errs, field.Forbidden(p.Child("securityContext", "windowsOptions"), why))
		}
	})
	return errs
}

// option is a field, and whether it is set.
type option struct {
	name string
	set  bool
}

// noLinuxOptions refuses what only Linux has.
func (c *checker) noLinuxOptions(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	refuse := func(path *field.Path, options []option) {
		for _, o := range options {
			if o.set {
				errs = append(errs, field.Forbidden(path.Child(o.name), "cannot be set for a windows pod"))
			}
		}
	}
	s := c.spec
	refuse(path, []option{{"hostUsers", s.HostUsers != nil}, {"hostPID", s.HostPID}, {"hostIPC", s.HostIPC}, {"shareProcessNamespace", s.ShareProcessNamespace != nil}})
	if sc := s.SecurityContext; sc != nil {
		refuse(path.Child("securityContext"), []option{
			{"appArmorProfile", sc.AppArmorProfile != nil}, {"seLinuxOptions", sc.SELinuxOptions != nil}, {"seccompProfile", sc.SeccompProfile != nil},
			{"fsGroup", sc.FSGroup != nil}, {"fsGroupChangePolicy", sc.FSGroupChangePolicy != nil}, {"sysctls", len(sc.Sysctls) > 0},
			{"runAsUser", sc.RunAsUser != nil}, {"runAsGroup", sc.RunAsGroup != nil}, {"supplementalGroups", sc.SupplementalGroups != nil},
			{"supplementalGroupsPolicy", sc.SupplementalGroupsPolicy != nil}, {"seLinuxChangePolicy", sc.SELinuxChangePolicy != nil},
		})
	}
	eachContainer(s, path, func(ctr *v1.Container, p *field.Path) {
		if sc := ctr.SecurityContext; sc != nil {
			refuse(p.Child("securityContext"), []option{
				{"appArmorProfile", sc.AppArmorProfile != nil}, {"seLinuxOptions", sc.SELinuxOptions != nil}, {"seccompProfile", sc.SeccompProfile != nil},
				{"capabilities", sc.Capabilities != nil}, {"readOnlyRootFilesystem", sc.ReadOnlyRootFilesystem != nil}, {"privileged", sc.Privileged != nil},
				{"allowPrivilegeEscalation", sc.AllowPrivilegeEscalation != nil}, {"procMount", sc.ProcMount != nil},
				{"runAsUser", sc.RunAsUser != nil}, {"runAsGroup", sc.RunAsGroup != nil},
			})
		}
	})
	return errs
}

// validateHostProcess checks containers of Windows that are processes of the host: all of
// a pod's are, or none, and they have its network (validateWindowsHostProcessPod).
func (c *checker) validateHostProcess(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var pod *bool
	if sc := c.spec.SecurityContext; sc != nil && sc.WindowsOptions != nil {
		pod = sc.WindowsOptions.HostProcess
	}
	all, host := 0, 0
	eachContainer(c.spec, path, func(ctr *v1.Container, p *field.Path) {
		all++
		own := pod
		if sc := ctr.SecurityContext; sc != nil && sc.WindowsOptions != nil && sc.WindowsOptions.HostProcess != nil {
			own = sc.WindowsOptions.HostProcess
		}
		if pod != nil && *own != *pod {
			errs = append(errs, field.Invalid(p.Child("securityContext", "windowsOptions", "hostProcess"), *own,
				fmt.Sprintf("pod hostProcess value must be identical if both are specified, was %v", *pod)))
		}
		if own != nil && *own {
			host++
		}
	})
	if host == 0 {
		return errs
	}
	if host != all {
		errs = append(errs, field.Invalid(path, "", "If pod contains any hostProcess containers then all containers must be HostProcess containers"))
	}
	if !c.spec.HostNetwork {
		errs = append(errs, field.Invalid(path.Child("hostNetwork"), false, "hostNetwork must be true if pod contains any hostProcess containers"))
	}
	return errs
}

// The bounds of Windows' options.
const (
	maxCredentialSpecKiB = 64
	maxUserDomain        = 256
	maxUserName          = 104
)

// validateWindowsOptions is validateWindowsSecurityContextOptions.
func validateWindowsOptions(o *v1.WindowsSecurityContextOptions, path *field.Path) field.ErrorList {
	if o == nil {
		return nil
	}
	var errs field.ErrorList
	if name := o.GMSACredentialSpecName; name != nil {
		errs = append(errs, fields.DNSName(*name, path.Child("gmsaCredentialSpecName"))...)
	}
	if spec := o.GMSACredentialSpec; spec != nil {
		p := path.Child("gmsaCredentialSpec")
		switch {
		case *spec == "":
			errs = append(errs, field.Invalid(p, *spec, "gmsaCredentialSpec cannot be an empty string"))
		case len(*spec) > maxCredentialSpecKiB*1024:
			errs = append(errs, field.Invalid(p, *spec, fmt.Sprintf("gmsaCredentialSpec size must be under %d KiB", maxCredentialSpecKiB)))
		}
	}
	if name := o.RunAsUserName; name != nil {
		errs = append(errs, fields.Invalid(path.Child("runAsUserName"), *name, userNameMistakes(*name))...)
	}
	return errs
}

// userNameMistakes are those in the name of a user of Windows, with a domain or without:
// `NT AUTHORITY\NETWORK SERVICE`.
func userNameMistakes(name string) []string {
	parts := strings.Split(name, `\`)
	switch {
	case name == "":
		return []string{"runAsUserName cannot be an empty string"}
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return []string{"runAsUserName cannot contain control characters"}
	case len(parts) > 2:
		return []string{"runAsUserName cannot contain more than one backslash"}
	}
	var out []string
	user := parts[len(parts)-1]
	if len(parts) == 2 {
		if len(parts[0]) >= maxUserDomain {
			out = append(out, fmt.Sprintf("runAsUserName's Domain length must be under %d characters", maxUserDomain))
		}
		if !netBIOSName(parts[0]) && !windowsDomain(parts[0]) {
			out = append(out, "runAsUserName's Domain doesn't match the NetBios nor the DNS format")
		}
	}
	if user == "" {
		out = append(out, "runAsUserName's User cannot be empty")
	} else if len(user) > maxUserName {
		out = append(out, fmt.Sprintf("runAsUserName's User length must not be longer than %d characters", maxUserName))
	}
	if user != "" && strings.Trim(user, ". ") == "" {
		out = append(out, "runAsUserName's User cannot contain only periods or spaces")
	}
	if strings.ContainsAny(user, `"/\:;|=,+*?<>@[]`) {
		out = append(out, `runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]`)
	}
	return out
}

// netBIOSName reports whether a domain has a name of the old kind: up to 15 characters.
func netBIOSName(s string) bool {
	return s != "" && len([]rune(s)) <= 15 && s[0] != '.' && !strings.ContainsAny(s, `\/:*?"<>|`)
}

// windowsDomain reports whether a domain has a name of DNS, in either case.
func windowsDomain(s string) bool {
	label := `[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?`
	return regexp.MustCompile(`^` + label + `(?:\.` + label + `)*$`).MatchString(s)
}
