package shell

import (
	"sort"
	"strings"

	"github.com/drydock-sim/drydock/ground/lists"
)

// Flags of a variable.
const (
	// Flags combine; a variable with flagUnset has a name and attributes, and counts as unset for
	// all that reads it.
	flagExport uint8 = 1 << iota
	flagReadonly
	flagUnset   // declared (export x, local x), but without a value
	flagDynamic // LINENO and RANDOM as long as nobody unset them
)

// variable is one shell variable. It is a plain value: frames and temporary assignments save a
// copy and put that back.
type variable struct {
	name, value string
	hash        uint32
	flags       uint8
}

// vars holds a shell's variables in the order of their making. There are few
// enough of them that a search over the hashes beats a map, and a copy for a
// subshell is one allocation.
type vars struct {
	list []variable
	// env is the environment of programs, kept until a variable changes.
	env []string
}

// hashName is ash's hash of a variable's name. The order of its table is the
// order in which env shows what a shell hands on, which logs of containers
// show.
func hashName(name string) uint32 {
	if name == "" {
		return 0
	}
	// The first byte counts twice, shifted and not, as in ash's hashvar.
	h := uint32(name[0]) << 4
	for i := 0; i < len(name); i++ {
		h += uint32(name[i])
	}
	return h
}

// tableSize is the number of chains in ash's table of variables.
// It is VTABSIZE of ash.
const tableSize = 39

// find returns a variable, also one without a value, or nil. The pointer is
// good until one is added or removed. Comparing hashes first saves most comparisons of strings.
func (v *vars) find(name string) *variable {
	h := hashName(name)
	for i := range v.list {
		if x := &v.list[i]; x.hash == h && x.name == name {
			return x
		}
	}
	return nil
}

// get returns the value of a variable and whether it has one.
func (v *vars) get(name string) (string, bool) {
	x := v.find(name)
	if x == nil || x.flags&flagUnset != 0 {
		return "", false
	}
	return x.value, true
}

// value returns the value of a variable, empty if it has none.
func (v *vars) value(name string) string {
	s, _ := v.get(name)
	return s
}

// set sets a variable, whether or not it is read-only, and adds flags. Who must
// heed read-only ones asks trySet. flagUnset goes, as there is a value now; no other flag is ever
// taken away here.
func (v *vars) set(name, value string, flags uint8) {
	x := v.find(name)
	if x == nil {
		v.list = append(v.list, variable{name: name, value: value, hash: hashName(name), flags: flags})
	} else {
		x.value = value
		x.flags = x.flags&^flagUnset | flags
		flags = x.flags
	}
	// Only what is exported shows in the environment.
	if flags&flagExport != 0 {
		// An exported variable's value is part of the cached environment.
		v.env = nil
	}
}

// declare adds flags to a variable that may have no value, as export NAME does.
func (v *vars) declare(name string, flags uint8) {
	x := v.find(name)
	if x == nil {
		v.list = append(v.list, variable{name: name, hash: hashName(name), flags: flags | flagUnset})
		return
	}
	x.flags |= flags
	v.env = nil
}

// unset removes a variable, whether or not it is read-only.
func (v *vars) unset(name string) {
	for i := range v.list {
		if v.list[i].name == name {
			v.list = append(v.list[:i], v.list[i+1:]...)
			v.env = nil
			return
		}
	}
}

// put makes a variable what it was (see frame), flags included.
//
// A variable that was removed meanwhile comes back at the end of the list, and so may show later
// in env than before.
func (v *vars) put(old variable) {
	v.env = nil
	if x := v.find(old.name); x != nil {
		*x = old
		return
	}
	v.list = append(v.list, old)
}

// clone copies the variables, with room for a few more. Four more are what a subshell in a loop
// commonly sets.
func (v *vars) clone() vars {
	// The environment is shared until either changes: it is dropped then, not written to.
	return vars{list: append(make([]variable, 0, len(v.list)+4), v.list...), env: v.env}
}

// environ returns the exported variables as a program gets them, in ash's
// order. The slice is shared and must not be written to: it is made anew only
// when a variable has changed, and thousands of programs get the same.
func (v *vars) environ() []string {
	if v.env != nil {
		return v.env
	}
	// env(1) shows the order of ash's hash table, so the table is rebuilt.
	var heads [tableSize]int32 // 1-based index into list
	next := make([]int32, len(v.list))
	n := 0
	// Backwards, so that each chain is in the order in which its variables were made.
	for i := len(v.list) - 1; i >= 0; i-- {
		x := &v.list[i]
		if x.flags&(flagExport|flagUnset) != flagExport {
			continue
		}
		b := x.hash % tableSize
		next[i] = heads[b]
		heads[b] = int32(i + 1)
		n++
	}
	env := make([]string, 0, n)
	for _, h := range heads {
		for i := h; i != 0; i = next[i-1] {
			x := &v.list[i-1]
			env = append(env, x.name+"="+x.value)
		}
	}
	v.env = env
	return env
}

// sorted returns the variables whose flags, under mask, are want, by name. ash sorts set, export
// -p and readonly -p by name.
func (v *vars) sorted(mask, want uint8) []variable {
	out := lists.Filter(v.list, func(x variable) bool { return x.flags&mask == want })
	sort.Slice(out, func(i, j int) bool { return out[i].name < out[j].name })
	return out
}

// flagGone marks a variable that did not exist when it was saved.
const flagGone uint8 = 1 << 7

// save returns what a variable is, for giveBack.
//
// The two are for variables that are changed for a while: by local and by assignments before a
// function or a builtin.
func (v *vars) save(name string) variable {
	if x := v.find(name); x != nil {
		return *x
	}
	return variable{name: name, flags: flagGone}
}

// giveBack makes a variable what save found.
func (v *vars) giveBack(old variable) {
	if old.flags&flagGone != 0 {
		v.unset(old.name)
		return
	}
	v.put(old)
}

// singleQuote quotes s as ash does in listings: 'it'"'"'s', which a shell reads
// back as it was. A quote can't stand within single quotes, so runs of them are put in double
// ones.
func singleQuote(s string) string {
	if !strings.Contains(s, "'") {
		return "'" + s + "'"
	}
	var b strings.Builder
	for s != "" {
		n := strings.IndexByte(s, '\'')
		if n < 0 {
			n = len(s)
		}
		b.WriteByte('\'')
		b.WriteString(s[:n])
		b.WriteByte('\'')
		s = s[n:]
		q := 0
		for q < len(s) && s[q] == '\'' {
			q++
		}
		if q > 0 {
			b.WriteByte('"')
			b.WriteString(s[:q])
			b.WriteByte('"')
			s = s[q:]
		}
	}
	return b.String()
}

// maybeQuote quotes s where ash does in what set -x shows. The characters that need none are
// +,-./0-9: then @A-Z, ], ^, _ and a-z.
func maybeQuote(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < '+' || c >= ';' && c <= '?' || c == '`' || c == '[' || c == '\\' || c > 'z' {
			return singleQuote(s)
		}
	}
	return s
}
