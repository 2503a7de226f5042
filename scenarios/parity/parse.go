package parity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
)

// Read is Parse, with errors that say where in the data they are, as
// line:column, and that guess what was meant. It is for people's files; Parse is enough for the
// library's.
func Read(data []byte) (*Case, error) {
	c, err := Parse(data)
	fields := fieldsOf(data)
	switch {
	case err != nil:
		return nil, fields.locate(data, err)
	case fields.top["actions"] == 0:
		return nil, fields.locate(data, errors.New("actions: required"))
	}
	return c, nil
}

// Locate puts the place in data, as line:column, before an error of decoding it or of an action, and a
// guess of what was meant behind it. It is for recordings of any kind whose actions are a list.
func Locate(data []byte, err error) error {
	f := fieldsOf(data)
	return f.locate(data, position(data, err))
}

// fields is where the fields of a recording stand. Offsets are in bytes.
type fields struct {
	top     map[string]int64 // ends of names
	actions []actionFields
}

// actionFields are an action's fields as they are written, and where it begins.
type actionFields struct {
	offset int64
	fields map[string]json.RawMessage
}

// fieldsOf reads as far as it can.
func fieldsOf(data []byte) fields {
	f := fields{top: map[string]int64{}}
	dec := json.NewDecoder(bytes.NewReader(data))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return f
	}
	for dec.More() {
		name, err := dec.Token()
		key, ok := name.(string)
		// What is wrong with the data is Parse's to say; what was found before it
		// is enough for that.
		if err != nil || !ok {
			return f
		}
		f.top[key] = dec.InputOffset()
		if key == "actions" {
			err = f.readActions(dec, data)
		} else {
			err = dec.Decode(new(json.RawMessage))
		}
		if err != nil {
			return f
		}
	}
	return f
}

// readActions reads a list of actions one by one, so that an error names which.
func (f *fields) readActions(dec *json.Decoder, data []byte) error {
	if open, err := dec.Token(); err != nil || open != json.Delim('[') {
		return errors.Join(err, errors.ErrUnsupported)
	}
	for dec.More() {
		a := actionFields{offset: dec.InputOffset()}
		// The decoder stands behind the last token; the action begins at its
		// brace.
		a.offset += int64(max(0, bytes.IndexByte(data[a.offset:], '{')))
		if err := dec.Decode(&a.fields); err != nil {
			return err
		}
		f.actions = append(f.actions, a)
	}
	_, err := dec.Token()
	return err
}

// What Parse says of fields: the action's number, the action, the field.
var ofField = regexp.MustCompile(`^(?:actions\[(\d+)\]: )?(?:[a-z-]+: )?([A-Za-z-]+): `)

// locate puts a position before an error of Parse that has none, and a guess
// behind it. The error's text names the field, which leads to its place.
func (f *fields) locate(data []byte, err error) error {
	m := ofField.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	if m[1] == "" {
		return fmt.Errorf("%s: %w%s", lineColumn(data, f.top[m[2]]), err, f.guess(m[2], decode.SortedKeys(f.top)))
	}
	i, _ := strconv.Atoi(m[1])
	if i >= len(f.actions) {
		return err
	}
	a, guess := f.actions[i], ""
	var name string
	switch _, given := a.fields[m[2]]; {
	case !given:
		guess = misspelt(m[2], decode.SortedKeys(a.fields))
	case m[2] == "action" && json.Unmarshal(a.fields["action"], &name) == nil:
		guess = suggest.Suffix(name, decode.SortedKeys(actions))
	}
	return fmt.Errorf("%s: %w%s", lineColumn(data, a.offset), err, guess)
}

// guess is the field that may be the missing one, misspelt.
func (f *fields) guess(name string, given []string) string {
	if f.top[name] != 0 {
		return ""
	}
	return misspelt(name, given)
}

// misspelt points to a field that is there and may be meant for a missing one.
func misspelt(name string, given []string) string {
	if near := suggest.Near(name, given); near != "" {
		return fmt.Sprintf(" (is it misspelt as %q?)", near)
	}
	return ""
}

// position says where in data an error of its decoding is, as line:column, and
// what it is in words. Other errors stay.
func position(data []byte, err error) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	offset := int64(-1)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &typ):
		offset = typ.Offset
		if err = fmt.Errorf("%s: cannot be of JSON's type %s", typ.Field, typ.Value); typ.Field == "" {
			err = fmt.Errorf("a recording is an object, not of JSON's type %s", typ.Value)
		}
	}
	if offset < 0 || offset > int64(len(data)) {
		return err
	}
	return fmt.Errorf("%s: %w", lineColumn(data, offset), err)
}

// lineColumn is a place in data, both counted from 1.
func lineColumn(data []byte, offset int64) string {
	before := data[:offset]
	line := 1 + bytes.Count(before, []byte{'\n'})
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("%d:%d", line, column)
}
