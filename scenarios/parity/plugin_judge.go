package parity

import (
	"encoding/json"
	"fmt"
	"io"
)

// JudgePlugins compares a replay of a case with plugins with its recorded runs.
func JudgePlugins(c *PluginCase, replay *PluginObservation) (Verdict, error) {
	rep, err := asObject(replay)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", c.Name, err)
	}
	return judge(c.runs, rep), nil
}

// Show writes the replay as JSON.
func (c *PluginCase) Show(w io.Writer, seen *PluginObservation) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(seen)
}
