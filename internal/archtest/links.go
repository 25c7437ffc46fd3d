package archtest

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// link is a Markdown link; images and links with a title do not occur here.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// CheckLinks finds links of Markdown files to missing files of the tree.
func CheckLinks(fsys fs.FS) ([]Finding, error) {
	var out []Finding
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipFolder(fsys, name)
		}
		if path.Ext(name) != ".md" {
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		out = append(out, deadLinks(fsys, name, string(text))...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("check links: %w", err)
	}
	return out, nil
}

func deadLinks(fsys fs.FS, name, text string) []Finding {
	var out []Finding
	n, code := 0, false
	for line := range strings.Lines(text) {
		n++
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if code || strings.HasPrefix(line, "    ") {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(line, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, ":") {
				continue // within the page, or a URL
			}
			if _, err := fs.Stat(fsys, path.Join(path.Dir(name), target)); err != nil {
				out = append(out, Finding{"link", fmt.Sprintf("%s:%d", name, n), target + " is not there"})
			}
		}
	}
	return out
}
