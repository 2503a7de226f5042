package parity

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestPlaceholders has answers with placeholders, each beside what was seen.
func TestPlaceholders(t *testing.T) {
	const uid, other = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
	for _, tc := range []struct {
		name       string
		want, seen []string
		problem    string // in the difference; "": none
	}{
		{"alike", []string{`{"code":200,"body":{"a":[1,"x",null,true]}}`}, []string{`{"code":200,"body":{"a":[1.0,"x",null,true]}}`}, ""},
		{"another number", []string{`{"code":200}`}, []string{`{"code":201}`}, "response 0 (GET /0) code wanted 200 got 201"},
		{"a field too many", []string{`{}`}, []string{`{"body":null}`}, "body wanted (absent) got null"},
		{"a list that is longer", []string{`{"body":[1]}`}, []string{`{"body":[1,2]}`}, "body.1 wanted (absent) got 2"},
		{"a UID", []string{`{"uid":"<uid:1>"}`, `{"text":"of <uid:1>."}`}, []string{`{"uid":"` + uid + `"}`, `{"text":"of ` + uid + `."}`}, ""},
		{"a UID that becomes another", []string{`{"uid":"<uid:1>"}`, `{"uid":"<uid:1>"}`}, []string{`{"uid":"` + uid + `"}`, `{"uid":"` + other + `"}`}, "response 1 (GET /1) uid"},
		{"two UIDs that are one", []string{`{"uid":"<uid:1>"}`, `{"uid":"<uid:2>"}`}, []string{`{"uid":"` + uid + `"}`, `{"uid":"` + uid + `"}`}, "response 1 (GET /1) uid"},
		{"no UID", []string{`{"uid":"<uid:1>"}`}, []string{`{"uid":"x"}`}, `uid wanted "<uid:1>" got "x"`},
		{"versions", []string{`{"v":"<rv:1>"}`, `{"v":"<rv:3>"}`, `{"v":"<rv:3>"}`}, []string{`{"v":"7"}`, `{"v":"10"}`, `{"v":"10"}`}, ""},
		{"versions that go back", []string{`{"v":"<rv:1>"}`, `{"v":"<rv:2>"}`}, []string{`{"v":"7"}`, `{"v":"6"}`}, `response 1 (GET /1) v wanted "<rv:2>, after <rv:1>, which is 7" got "6"`},
		{"a version that stays", []string{`{"v":"<rv:1>"}`, `{"v":"<rv:2>"}`}, []string{`{"v":"7"}`, `{"v":"7"}`}, "response 1 (GET /1) v"},
		{"a list's", []string{`{"v":"<rv:1>"}`, `{"v":"<rv:1+>"}`, `{"v":"<rv:2>"}`}, []string{`{"v":"7"}`, `{"v":"8"}`, `{"v":"9"}`}, ""},
		{"a list's that is too old", []string{`{"v":"<rv:2>"}`, `{"v":"<rv:2+>"}`}, []string{`{"v":"7"}`, `{"v":"6"}`}, "at or after <rv:2>, which is 7"},
		{"a list's that is too new", []string{`{"v":"<rv:2>"}`, `{"v":"<rv:1+>"}`}, []string{`{"v":"7"}`, `{"v":"7"}`}, "before <rv:2>, which is 7"},
		{"times", []string{`{"t":"<time>","m":"<microtime>","l":"<time+30>"}`}, []string{`{"t":"2026-01-01T00:00:00Z","m":"2026-01-01T00:00:00.25Z","l":"2026-01-01T00:00:31Z"}`}, ""},
		{"a time of a second ago", []string{`{}`, `{"t":"<time>"}`}, []string{`{}`, `{"t":"2026-01-01T00:00:00Z"}`}, ""},
		{"an older time", []string{`{"t":"<time>"}`}, []string{`{"t":"2025-12-31T23:59:00Z"}`}, "response 0 (GET /0) t"},
		{"a later time", []string{`{"t":"<time>"}`}, []string{`{"t":"2026-01-01T00:01:00Z"}`}, "response 0 (GET /0) t"},
		{"not 30 s later", []string{`{"t":"<time+30>"}`}, []string{`{"t":"2026-01-01T00:00:40Z"}`}, "response 0 (GET /0) t"},
		{"an object that was made again", []string{`{"uid":"<uid:1>","creationTimestamp":"<time>"}`, `{"uid":"<uid:1>","creationTimestamp":"<time>"}`}, []string{`{"uid":"` + uid + `","creationTimestamp":"2026-01-01T00:00:00Z"}`, `{"uid":"` + uid + `","creationTimestamp":"2026-01-01T00:00:01Z"}`}, "response 1 (GET /1) creationTimestamp"},
		{"as was recorded", []string{`{"uid":"<uid:1>","creationTimestamp":"<time>"}`, `{"uid":"<uid:1>","creationTimestamp":"<time:changed>"}`}, []string{`{"uid":"` + uid + `","creationTimestamp":"2026-01-01T00:00:00Z"}`, `{"uid":"` + uid + `","creationTimestamp":"2026-01-01T00:00:01Z"}`}, ""},
		{"a port, which is a number", []string{`{"nodePort":"<nodePort:1>","text":"80:<nodePort:1>/TCP"}`}, []string{`{"nodePort":30001,"text":"80:30001/TCP"}`}, ""},
		{"another port", []string{`{"nodePort":"<nodePort:1>"}`, `{"nodePort":"<nodePort:1>"}`}, []string{`{"nodePort":30001}`, `{"nodePort":30002}`}, "response 1 (GET /1) nodePort"},
		{"ages", []string{`{"cells":["<age>","<none>"]}`}, []string{`{"cells":["2m5s","<none>"]}`}, ""},
		{"no age", []string{`{"cells":["<age>"]}`}, []string{`{"cells":["<unknown>"]}`}, "cells.0"},
		{"causes in another order", []string{`{"kind":"Status","message":"x is invalid: [a: b, c: d]","details":{"causes":[{"field":"a","message":"b"},{"field":"c","message":"d"}]}}`}, []string{`{"kind":"Status","message":"x is invalid: [c: d, a: b]","details":{"causes":[{"field":"c","message":"d"},{"field":"a","message":"b"}]}}`}, ""},
		{"a message that the causes don't have", []string{`{"kind":"Status","message":"x is invalid: [a: b, c: d]","details":{"causes":[{"field":"a","message":"b"},{"field":"c","message":"d"}]}}`}, []string{`{"kind":"Status","message":"x is invalid: [a: b, c: e]","details":{"causes":[{"field":"a","message":"b"},{"field":"c","message":"d"}]}}`}, "message"},
		{"items in another order", []string{`{"items":[1,2]}`}, []string{`{"items":[2,1]}`}, "items.0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, seen := &Case{Name: tc.name}, &Seen{}
			began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for i := range tc.want {
				c.Requests = append(c.Requests, Request{Method: "GET", Path: "/" + string(rune('0'+i))})
				c.Responses = append(c.Responses, parsed(t, tc.want[i]))
				seen.Answers = append(seen.Answers, parsed(t, tc.seen[i]))
				sent := began.Add(time.Duration(i) * time.Second)
				seen.Sent, seen.Done = append(seen.Sent, sent), append(seen.Done, sent)
			}
			found := Judge(c, seen)
			switch {
			case tc.problem == "" && len(found) > 0:
				t.Errorf("%v, want no difference", found)
			case tc.problem != "" && (len(found) == 0 || !strings.Contains(found[0].String(), tc.problem)):
				t.Errorf("%v, want one with %s", found, tc.problem)
			}
		})
	}
}

func parsed(t *testing.T, s string) Answer {
	t.Helper()
	v, err := decoded([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return object(v)
}

// TestFilled has references to earlier answers in all parts of a request.
func TestFilled(t *testing.T) {
	r := &replay{named: map[string]Answer{"a": parsed(t, `{"code":200,"body":{"items":[{"v":"7","n":3,"q":"say \"x\""}]}}`), "w": parsed(t, `{"events":[{"v":"9"}]}`)}}
	header, text := "${a:items.0.v}", "${w:events.0.v}"
	q := r.filled(&Request{Path: "/x?v=${a:items.0.v}&n=${a:items.0.n}&m=${a:items.1.v}", Body: json.RawMessage(`{"q":"${a:items.0.q}"}`), Text: &text, Headers: map[string]*string{"A": &header, "B": nil}})
	if q.Path != "/x?v=7&n=3&m=missing" || string(q.Body) != `{"q":"say \"x\""}` || *q.Text != "9" || *q.Headers["A"] != "7" {
		t.Errorf("%s %s %s %s", q.Path, q.Body, *q.Text, *q.Headers["A"])
	}
	if b, ok := q.Headers["B"]; !ok || b != nil {
		t.Error("a header that is to be left out was lost")
	}
}

func TestParse(t *testing.T) {
	for _, tc := range []struct{ file, problem string }{
		{`{"name":"x","requests":[{"method":"GET","path":"/"}],"responses":[{"code":200}]}`, ""},
		{`{"name":"x","requests":[{"method":1}]}`, "recording of an API: json:"},
		{`{"requests":[{"method":"GET"}]}`, "no name"},
		{`{"name":"x","requests":[{"method":"GET"}],"responses":[]}`, "1 requests, and 0 responses"},
	} {
		if _, err := Parse([]byte(tc.file)); (err == nil) != (tc.problem == "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
			t.Errorf("%s: %v, want %q", tc.file, err, tc.problem)
		}
	}
}
