package runopts

import (
	"errors"
	"fmt"
	"strings"
)

// parseEnvFile returns the value of key in a file of lines NAME='value', "" if
// it has no such line. A value is in single quotes and may span lines; blank
// lines, lines that begin with #, and a comment behind the closing quote mean
// nothing; a blank behind the = leaves the variable empty. Anything else, up to
// the line that is looked for, is an error (upstream pkg/kubelet/util/env).
func parseEnvFile(text, key string) (string, error) {
	text = lines(text)
	for number := 1; text != ""; number++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		line = strings.TrimLeft(line, " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		bad := func(what string) error {
			return fmt.Errorf("invalid environment variable format at line %d: %s", number, what)
		}
		name, value, ok := strings.Cut(line, "=")
		switch {
		case !ok:
			return "", bad("missing '='")
		case strings.TrimRight(name, " \t") == "":
			return "", bad("empty variable name")
		case strings.ContainsAny(name, " \t"):
			return "", bad("whitespace in the variable name or before '='")
		case value == "":
			return "", bad("value must be enclosed in single quotes")
		case value[0] == ' ' || value[0] == '\t':
			if name == key {
				return "", nil
			}
			continue
		case value[0] != '\'':
			return "", bad("value must be enclosed in single quotes")
		}
		value, rest, more, err := quoted(value[1:], text)
		if err != nil {
			return "", bad(err.Error())
		}
		if name == key {
			return value, nil
		}
		text, number = rest, number+more
	}
	return "", nil
}

// lines is the text with line ends as Unix has them.
func lines(text string) string {
	return strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\r")
}

// quoted reads on to the closing quote, into the lines that follow if need be:
// rest is what comes after the line of the closing quote, more how many more
// were read.
func quoted(line, text string) (value, rest string, more int, err error) {
	for {
		before, after, closed := strings.Cut(line, "'")
		value += before
		if closed {
			if after = strings.TrimLeft(after, " \t"); after != "" && after[0] != '#' {
				return "", "", 0, errors.New("unexpected content after the closing quote")
			}
			return value, text, more, nil
		}
		if text == "" {
			return "", "", 0, errors.New("unterminated single quote")
		}
		value += "\n"
		line, text, _ = strings.Cut(text, "\n")
		more++
	}
}
