package awk

import "strings"

// maxFields bounds the number of fields: $1e9 = 1 would make as many. Each field takes memory,
// even if it is empty.
const maxFields = 1 << 20

// setRecord makes line $0; the fields are cut when they are asked for.
func (in *interp) setRecord(line string) {
	in.record = line
	in.split = false
	in.stale = false
}

// getRecord returns $0, which is put together anew if a field has changed: only
// then, as programs often change several. The fields are joined by OFS as it is then, not as it
// was at the assignment.
func (in *interp) getRecord() string {
	if in.stale {
		in.stale = false
		ofs := in.vars[vOFS].value.text(in.convfmt())
		parts := make([]string, len(in.fields))
		for i, f := range in.fields {
			parts[i] = f.text(in.convfmt())
		}
		in.record = strings.Join(parts, ofs)
	}
	return in.record
}

// splitRecord cuts the record into fields, the first time that one of them or
// NF is asked for. FS is that of now; POSIX has that of when the record was
// read.
func (in *interp) splitRecord() {
	if in.split {
		return
	}
	in.split = true
	in.fields = in.fields[:0]
	for _, s := range in.splitText(in.record, in.vars[vFS].value.text(in.convfmt()), in.vars[vRS].value.text("") == "") {
		in.fields = append(in.fields, inputStr(s))
	}
	in.vars[vNF].value = num(float64(len(in.fields)))
}

// fieldIndex is the number of a field, cut off to a whole one. A value that is no number is 0,
// and so $0.
func (in *interp) fieldIndex(v value) int {
	i := v.float()
	if i < 0 {
		fail("cmd. line:1: Access to negative field")
	}
	if i > maxFields {
		fail("cmd. line:1: Too many fields")
	}
	return int(i)
}

// field returns $i, unset beyond the last one.
func (in *interp) field(v value) value {
	i := in.fieldIndex(v)
	if i == 0 {
		return inputStr(in.getRecord())
	}
	in.splitRecord()
	if i > len(in.fields) {
		return value{}
	}
	return in.fields[i-1]
}

// setField assigns to $i. A field beyond the last one makes those before it,
// empty. $0 itself makes all fields new.
func (in *interp) setField(i int, v value) {
	if i == 0 {
		in.setRecord(v.text(in.convfmt()))
		return
	}
	in.splitRecord()
	if i > len(in.fields) {
		in.setNF(i)
	}
	in.fields[i-1] = v
	in.stale = true
}

// setNF sets the number of fields: what is beyond goes, what is missing is
// unset. $0 is put together anew even if nothing else has changed, as POSIX wants of an
// assignment to NF.
func (in *interp) setNF(n int) {
	if n < 0 || n > maxFields {
		fail("cmd. line:1: Access to negative field")
	}
	in.splitRecord()
	for len(in.fields) < n {
		in.fields = append(in.fields, value{})
	}
	in.fields = in.fields[:n]
	in.vars[vNF].value = num(float64(n))
	in.stale = true
}

// splitText splits by a separator: a single space means runs of white space, a
// single other character itself, anything longer a regular expression. In
// paragraph mode a newline separates too. White space at both ends is dropped with a single space
// only.
func (in *interp) splitText(s, sep string, paragraph bool) []string {
	if s == "" {
		return nil
	}
	switch {
	case sep == " ":
		return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' })
	// Nothing separates each byte, as gawk has it.
	case sep == "":
		out := make([]string, len(s))
		for i := range out {
			out[i] = s[i : i+1]
		}
		return out
	// A backslash alone is treated as an expression, which it is not.
	case len(sep) == 1 && sep != `\`:
		if paragraph {
			s = strings.ReplaceAll(s, "\n", sep)
		}
		return strings.Split(s, sep)
	}
	if paragraph {
		sep = "(" + sep + ")|\n"
	}
	var out []string
	from := 0
	for _, loc := range in.compiled(sep).FindAll(s) {
		// An empty match separates nothing.
		if loc[0] == loc[1] {
			continue
		}
		out = append(out, s[from:loc[0]])
		from = loc[1]
	}
	return append(out, s[from:])
}
