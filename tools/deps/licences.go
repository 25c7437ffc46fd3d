package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

type licenceText struct{ name, words string }

// allowed has the licences of what the command may be built from, each by words that its text has and no other one.
// None asks for more than its text in a copy.
var allowed = []licenceText{
	{"Apache-2.0", "apache license version 2.0"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"BSD", "redistribution and use in source and binary forms, with or without modification"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"},
	{"ISC", "permission to use, copy, modify, and distribute this software for any purpose with or without fee"},
	{"CC0-1.0", "cc0 1.0 universal"},
}

// licences writes the licence of each module that the command is built from to table, and the texts to notices.
func licences(table, notices io.Writer) error {
	type module struct{ Path, Version, Dir string }
	packages, err := goJSON[struct{ Module *module }]("list", "-deps", "-json=Module", "./cmd/coppice")
	if err != nil {
		return err
	}
	var modules []module
	for _, p := range packages {
		if m := p.Module; m != nil && m.Version != "" && !slices.Contains(modules, *m) {
			modules = append(modules, *m)
		}
	}
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	faults := scripts(table)
	for _, m := range modules {
		names, text, err := licence(m.Dir)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", m.Path, err))
			continue
		}
		fmt.Fprintf(table, "%-60s %-24s %s\n", m.Path, m.Version, strings.Join(names, ", "))
		fmt.Fprintf(notices, "%s %s\n\n%s\n\n", m.Path, m.Version, text)
	}
	return errors.Join(faults...)
}

// scripts writes the licence of each package of the viewer's bundles to table.
func scripts(table io.Writer) (faults []error) {
	raw, err := os.ReadFile(filepath.Join("..", "web", "package-lock.json"))
	if err != nil {
		return []error{err}
	}
	var lock struct {
		Packages map[string]struct {
			Version, License string
			Dev              bool
		} `json:"packages"`
	}
	if err := json.Unmarshal(raw, &lock); err != nil {
		return []error{err}
	}
	for _, path := range slices.Sorted(maps.Keys(lock.Packages)) {
		p := lock.Packages[path]
		if path == "" || p.Dev {
			continue
		}
		fmt.Fprintf(table, "%-60s %-24s %s\n", path, p.Version, p.License)
		if !slices.ContainsFunc(allowed, func(l licenceText) bool { return strings.HasPrefix(p.License, l.name) }) {
			faults = append(faults, fmt.Errorf("%s: licence %q is not allowed", path, p.License))
		}
	}
	return faults
}

// licence returns the names of the licences in the files of a module, and their text.
func licence(dir string) (names []string, text string, err error) {
	var files []string
	for _, pattern := range []string{"LICEN[CS]E*", "COPYING*", "NOTICE*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, "", err
		}
		files = append(files, found...)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, "", err
		}
		text += string(raw) + "\n"
	}
	words := strings.Join(strings.Fields(strings.ToLower(text)), " ")
	for _, l := range allowed {
		if strings.Contains(words, l.words) && !slices.Contains(names, l.name) {
			names = append(names, l.name)
		}
	}
	if len(names) == 0 {
		return nil, "", fmt.Errorf("none of the allowed licences in %d files", len(files))
	}
	return names, strings.TrimSpace(text), nil
}
