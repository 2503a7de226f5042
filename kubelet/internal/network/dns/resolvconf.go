package dns

import (
	"fmt"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ParseResolvConf reads a resolv.conf: the last search line counts, with
// trailing dots taken off and "." left out; options of one name replace each
// other. Malformed lines are passed over. A # counts only at the beginning of a line, as
// upstream's.
func ParseResolvConf(text string) *runtimeapi.DNSConfig {
	out := &runtimeapi.DNSConfig{}
	for line := range strings.Lines(text) {
		if i := strings.IndexByte(line, '#'); i == 0 {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		switch fields[0] {
		case "nameserver":
			if len(fields) > 1 {
				out.Servers = append(out.Servers, fields[1])
			}
		case "search":
			out.Searches = nil
			for _, s := range fields[1:] {
				if s != "." {
					s = strings.TrimSuffix(s, ".")
				}
				if s != "." && s != "" {
					out.Searches = append(out.Searches, s)
				}
			}
		case "options":
			for _, o := range fields[1:] {
				out.Options = setOption(out.Options, o)
			}
		}
	}
	return out
}

// CheckLimits tells what of the node's resolv.conf, whose path is file, pods
// can't have: the messages of CheckLimitsForResolvConf events. One message at a time: the first
// limit that is exceeded is told.
func (c *Configurer) CheckLimits(file string, host *runtimeapi.DNSConfig) []string {
	var out []string
	domains := maxSearches
	if c.ClusterDomain != "" {
		domains -= 3 // those that the cluster adds
	}
	if len(host.Searches) > domains {
		out = append(out, tooManyDomains(file, domains))
		return out
	}
	for _, s := range host.Searches {
		if len(s) > maxSearch {
			out = append(out, tooLongDomain(file))
			return out
		}
	}
	if len(strings.Join(host.Searches, " ")) > maxSearchLength {
		out = append(out, tooLongLine(file))
	}
	return out
}

// The three texts are upstream's, which events have.
func tooManyDomains(file string, n int) string {
	return fmt.Sprintf("Resolv.conf file '%s' contains search line consisting of more than %d domains!", file, n)
}

func tooLongDomain(file string) string {
	return fmt.Sprintf("Resolv.conf file %q contains a search path which length is more than allowed %d chars!", file, maxSearch)
}

func tooLongLine(file string) string {
	return fmt.Sprintf("Resolv.conf file '%s' contains search line which length is more than allowed %d chars!", file, maxSearchLength)
}
