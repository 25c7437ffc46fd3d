package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// call adds a tool call to the assistant's message and works out its result.
func (s *stage) call(st step) error {
	tool := strings.TrimSuffix(st.verb, "!")
	var args arguments
	var text string
	var more *details
	var err error
	switch tool {
	case "read":
		args, text, err = s.read(st.arg)
	case "grep":
		args, text, err = s.grep(st.arg)
	case "write":
		args = arguments{Path: st.arg, Content: st.body + "\n"}
		s.files[st.arg] = args.Content
		text = fmt.Sprintf("Successfully wrote %d bytes to %s", len(args.Content), st.arg)
	case "edit":
		args, text, more, err = s.edit(st)
	case "bash":
		args, text = arguments{Command: st.arg}, st.body
	}
	if err != nil {
		return err
	}
	failed := tool != st.verb
	switch {
	case failed:
		text += "\n\nCommand exited with code 1"
	case text == "":
		text = "(no output)"
	}
	id := fmt.Sprintf("toolu_%016x%08x", s.ids.Uint64(), uint32(s.ids.Uint64()))
	s.reply = append(s.reply, block{Type: "toolCall", ID: id, Name: tool, Arguments: &args})
	s.pending = append(s.pending, toolResult{
		Role: "toolResult", ToolCallID: id, ToolName: tool, Content: textBlocks(text), Details: more, IsError: failed,
	})
	return nil
}

func (s *stage) read(arg string) (arguments, string, error) {
	name, span, _ := strings.Cut(arg, " ")
	text, ok := s.files[name]
	if !ok {
		return arguments{}, "", errors.New("no such file")
	}
	args := arguments{Path: name}
	if span == "" {
		return args, strings.TrimSuffix(text, "\n"), nil
	}
	var from, to int
	if _, err := fmt.Sscanf(span, "%d-%d", &from, &to); err != nil {
		return args, "", err
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if from < 1 || from > len(lines) {
		return args, "", fmt.Errorf("file has %d lines", len(lines))
	}
	to = min(to, len(lines))
	args.Offset, args.Limit = from, to-from+1
	return args, strings.Join(lines[from-1:to], "\n"), nil
}

func (s *stage) grep(arg string) (arguments, string, error) {
	pattern, dir, _ := strings.Cut(arg, " ")
	re, err := regexp.Compile(pattern)
	if err != nil {
		return arguments{}, "", err
	}
	var hits []string
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		if !strings.HasPrefix(name, dir) {
			continue
		}
		for i, line := range strings.Split(s.files[name], "\n") {
			if re.MatchString(line) {
				hits = append(hits, fmt.Sprintf("%s:%d: %s", name, i+1, strings.TrimSpace(line)))
			}
		}
	}
	if len(hits) == 0 {
		hits = []string{"No matches found"}
	}
	return arguments{Pattern: pattern, Path: dir}, strings.Join(hits, "\n"), nil
}

func (s *stage) edit(st step) (arguments, string, *details, error) {
	before, after, ok := strings.Cut("\n"+st.body+"\n", "\n=>\n")
	before = strings.TrimPrefix(before, "\n")
	after = strings.TrimSuffix(after, "\n")
	text := s.files[st.arg]
	if n := strings.Count(text, before); !ok || before == "" || n != 1 {
		return arguments{}, "", nil, fmt.Errorf("old text is %d times in the file", n)
	}
	head, tail, _ := strings.Cut(text, before)
	s.files[st.arg] = head + after + tail
	line := 1 + strings.Count(head, "\n")
	args := arguments{Path: st.arg, OldText: before, NewText: after}
	return args, "Successfully replaced text in " + st.arg + ".", &details{Diff: diff(line, before, after)}, nil
}

// diff shows an edit as pi does: removed lines, then added ones, each with its number.
func diff(line int, before, after string) string {
	var b strings.Builder
	for i, l := range strings.Split(before, "\n") {
		fmt.Fprintf(&b, "-%4d %s\n", line+i, l)
	}
	for i, l := range strings.Split(after, "\n") {
		fmt.Fprintf(&b, "+%4d %s\n", line+i, l)
	}
	return b.String()
}
