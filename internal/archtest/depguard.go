package archtest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// The lines of .golangci.yml between which the import table is written.
const (
	rulesBegin = "        # BEGIN rules: written by `go test ./internal/archtest -update` from its table\n"
	rulesEnd   = "        # END rules\n"
)

// WriteRules returns a .golangci.yml with its depguard rules replaced by those of the import table.
func WriteRules(config []byte) ([]byte, error) {
	head, rest, ok := bytes.Cut(config, []byte(rulesBegin))
	if !ok {
		return nil, fmt.Errorf("depguard rules: begin mark not found")
	}
	_, tail, ok := bytes.Cut(rest, []byte(rulesEnd))
	if !ok {
		return nil, fmt.Errorf("depguard rules: end mark not found")
	}
	return slices.Concat(head, []byte(rulesBegin), []byte(depguardRules()), []byte(rulesEnd), tail), nil
}

// depguardRules renders the table. Only files that are no tests are bound: what tests may import
// beyond that is this package's to judge.
func depguardRules() string {
	var b strings.Builder
	for _, e := range table {
		fmt.Fprintf(&b, "        %s:\n          list-mode: strict\n          files:\n", ruleName(e.dir))
		for _, glob := range fileGlobs(e.dir) {
			fmt.Fprintf(&b, "            - %q\n", glob)
		}
		b.WriteString("          allow:\n            - $gostd\n")
		var allowed []string
		for _, pattern := range e.ours {
			allowed = append(allowed, importPrefix(pattern))
		}
		if isLayer(e.dir) {
			allowed = append(allowed, ModulePath+"/"+e.dir)
		}
		for _, prefix := range widest(allowed) {
			fmt.Fprintf(&b, "            - %s\n", prefix)
		}
		for _, module := range e.ext {
			fmt.Fprintf(&b, "            - %s\n", module)
		}
	}
	return b.String()
}

// widest leaves out the prefixes that another covers: depguard looks at the nearest one only, and would
// refuse what a wider one allows.
func widest(prefixes []string) []string {
	return slices.DeleteFunc(slices.Clone(prefixes), func(p string) bool {
		return slices.ContainsFunc(prefixes, func(q string) bool {
			return q != p && !strings.HasSuffix(q, "$") && strings.HasPrefix(strings.TrimSuffix(p, "$"), q)
		})
	})
}

func ruleName(dir string) string {
	if dir == "" {
		return "coppice"
	}
	return strings.NewReplacer("/...", "-all", "/", "-").Replace(dir)
}

// importPrefix is what depguard compares an import path with: a prefix, or with $ the whole path.
func importPrefix(pattern string) string {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return ModulePath + "/" + base
	}
	if pattern == "" {
		return ModulePath + "$"
	}
	return ModulePath + "/" + pattern + "$"
}

// isLayer reports whether what lies below a folder is part of it: no other line of the table is there.
func isLayer(dir string) bool {
	for _, e := range table {
		if e.dir != dir && strings.HasPrefix(e.dir, dir+"/") {
			return false
		}
	}
	return dir != "" && !strings.HasSuffix(dir, "/...")
}

// fileGlobs names the files of a line of the table: those of its folder and below it, less those of a
// line that is more specific.
func fileGlobs(dir string) []string {
	globs := []string{"!$test"}
	base, deep := strings.CutSuffix(dir, "/...")
	switch {
	case isLayer(dir):
		return append(globs, inFolder(dir)+"**.go")
	case !deep:
		return append(globs, inFolder(dir)+"*.go")
	}
	for _, e := range table {
		if e.dir != dir && below(e.dir, base) {
			globs = append(globs, "!"+fileGlobs(e.dir)[1])
		}
	}
	return append(globs, inFolder(base)+"**.go")
}

func inFolder(dir string) string {
	if dir == "" {
		return "${base-path}/"
	}
	return "${base-path}/" + dir + "/"
}
