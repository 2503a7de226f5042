package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/drydock-sim/drydock/scenarios/parity"
	apiparity "github.com/drydock-sim/drydock/up/parity"
)

// aspectAnswers is what is compared of an API.
const aspectAnswers parity.Aspect = "answers"

// readAPICase reads a recording of an API: requests, and what they were answered.
func readAPICase(data []byte) (recorded, error) {
	c, err := apiparity.Parse(data)
	if err != nil {
		return recorded{}, err
	}
	if c.Kubectl() {
		return recorded{}, fmt.Errorf("recording %s runs kubectl, which is not replayed", c.Name)
	}
	return recorded{c.Name, true, func(uint64, func(string)) (seen any, verdict parity.Verdict, show func(io.Writer) error, err error) {
		server, stop, err := apiparity.Start(context.Background())
		if err != nil {
			return nil, nil, nil, err
		}
		defer func() { err = errors.Join(err, stop()) }()
		got := apiparity.Replay(context.Background(), server, c)
		for _, d := range apiparity.Judge(c, got) {
			verdict = append(verdict, parity.Difference{Aspect: aspectAnswers, Text: d.String()})
		}
		return got, verdict, func(w io.Writer) error { return showAnswers(w, c, got) }, nil
	}}, nil
}

// showAnswers prints the requests, each with the recorded answer and the replay's.
func showAnswers(w io.Writer, c *apiparity.Case, seen *apiparity.Seen) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for i := range c.Requests {
		_, err := fmt.Fprintf(w, "%s\n< ", &c.Requests[i])
		if err == nil {
			err = e.Encode(c.Responses[i])
		}
		if err == nil {
			_, err = io.WriteString(w, "> ")
		}
		if err == nil {
			err = e.Encode(seen.Answers[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}
