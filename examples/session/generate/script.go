package main

import (
	"fmt"
	"strings"
)

// step is one direction of the script.
type step struct {
	line      int // of the script, from 1
	verb, arg string
	body      string // without its last newlines
}

// parse splits a script into its steps. A line that starts with # means nothing outside a body.
func parse(script string) ([]step, error) {
	var steps []step
	var body []string
	finish := func() {
		if len(steps) > 0 {
			steps[len(steps)-1].body = strings.Trim(strings.Join(body, "\n"), "\n")
		}
		body = nil
	}
	for i, line := range strings.Split(script, "\n") {
		direction, ok := strings.CutPrefix(line, ".")
		if !ok {
			if len(steps) == 0 && line != "" && !strings.HasPrefix(line, "#") {
				return nil, fmt.Errorf("line %d: text before the first direction", i+1)
			}
			body = append(body, line)
			continue
		}
		finish()
		verb, arg, _ := strings.Cut(direction, " ")
		steps = append(steps, step{line: i + 1, verb: verb, arg: strings.TrimSpace(arg)})
	}
	finish()
	return steps, nil
}
