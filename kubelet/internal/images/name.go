package images

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// ApplyDefaultTag returns the image name with ":latest" added if it has
// neither tag nor digest. The name is not changed otherwise: a short one stays
// short.
func ApplyDefaultTag(image string) (string, error) {
	if plainlyTagged(image) {
		return image, nil
	}
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", fmt.Errorf("couldn't parse image name %q: %w", image, err)
	}
	_, tagged := named.(reference.Tagged)
	_, digested := named.(reference.Digested)
	if !tagged && !digested {
		image += ":latest"
	}
	return image, nil
}

// plainlyTagged recognises the usual names with a tag, for which the parser's
// regular expressions would be a waste: path components of lower-case letters
// and digits with single separators, and a short tag. The host may have a port.
func plainlyTagged(image string) bool {
	if len(image) > 128 {
		return false
	}
	slash := strings.LastIndexByte(image, '/')
	colon := strings.LastIndexByte(image, ':')
	if colon <= slash+1 || colon == len(image)-1 || image[colon+1] == '.' || image[colon+1] == '-' {
		return false
	}
	for i := colon + 1; i < len(image); i++ {
		if c := image[i]; !lowerOrDigit(c) && (c < 'A' || c > 'Z') && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	path := image[:colon]
	if first := strings.IndexByte(path, '/'); first >= 0 {
		if host, port, ok := strings.Cut(path[:first], ":"); ok {
			if !plainComponent(host) || !digits(port) || strings.ContainsAny(host, "_") {
				return false
			}
			path = path[first+1:]
		}
	}
	for more := true; more; {
		var part string
		part, path, more = strings.Cut(path, "/")
		if !plainComponent(part) {
			return false
		}
	}
	return true
}

// plainComponent: letters and digits, with single separators between them.
func plainComponent(s string) bool {
	if s == "" {
		return false
	}
	sep := true
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case lowerOrDigit(c):
			sep = false
		case (c == '.' || c == '-' || c == '_') && !sep:
			sep = true
		default:
			return false
		}
	}
	return !sep
}

// lowerOrDigit reports whether c may begin and end a part of a name.
func lowerOrDigit(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// digits reports whether s is a number, such as a port.
func digits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
