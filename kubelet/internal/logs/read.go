package logs

import (
	"bytes"
	"time"
)

// A log's line is TIMESTAMP STREAM TAGS CONTENT; of the tags, separated by
// colons, the first reports whether the line is whole.
const (
	tagPartial = "P"
	delimiter  = " "
)

// Line is an entry of a log.
type Line struct {
	Time time.Time
	// Stream is "stdout" or "stderr".
	Stream string
	// Content ends in a newline unless the line goes on in the next entry of
	// its stream.
	Content []byte
}

// ParseLine reads an entry, given without the newline at its end; ok is false
// if it is none.
func ParseLine(text []byte) (line Line, ok bool) {
	stamp, rest, ok := bytes.Cut(text, []byte(delimiter))
	if !ok {
		return Line{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil {
		return Line{}, false
	}
	stream, rest, ok := bytes.Cut(rest, []byte(delimiter))
	if !ok || string(stream) != "stdout" && string(stream) != "stderr" {
		return Line{}, false
	}
	tags, content, ok := bytes.Cut(rest, []byte(delimiter))
	if !ok {
		return Line{}, false
	}
	tag, _, _ := bytes.Cut(tags, []byte(":"))
	if string(tag) != tagPartial {
		content = append(content[:len(content):len(content)], '\n')
	}
	return Line{Time: t, Stream: string(stream), Content: content}, true
}

// Tail returns what the last n lines of a log say, both streams together, at
// most its last limit bytes. Lines are counted as they lie in the file; one at
// the end that is not finished does not count, and what can't be parsed is left
// out.
func Tail(data []byte, n, limit int) []byte {
	data = data[tailStart(data, n):]
	var out []byte
	for read := 0; len(data) > 0 && read < n; {
		text, rest, whole := bytes.Cut(data, []byte("\n"))
		data = rest
		line, ok := ParseLine(text)
		if !ok {
			continue
		}
		if !whole { // nothing comes behind it
			line.Content = bytes.TrimSuffix(line.Content, []byte("\n"))
		}
		out = append(out, line.Content...)
		read++
	}
	return out[max(0, len(out)-limit):]
}

// tailStart is where the last n lines begin.
func tailStart(data []byte, n int) int {
	end := bytes.LastIndexByte(data, '\n')
	for ; n > 0 && end >= 0; n-- {
		end = bytes.LastIndexByte(data[:end], '\n')
	}
	return end + 1
}
