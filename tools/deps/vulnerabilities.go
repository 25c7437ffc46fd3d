package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// database is the module that has the Go vulnerability database, of 2026-11-05.
const database = "golang.org/x/vulndb@v0.0.0-20261105234957-e22db6528018"

// A report is the part of an OSV entry that is needed here.
type report struct {
	ID       string    `json:"id"`
	Modified time.Time `json:"modified"`
	Summary  string    `json:"summary"`
	Affected []struct {
		Package struct {
			Name string `json:"name"`
		} `json:"package"`
		Ranges []struct {
			Events []struct {
				Introduced string `json:"introduced"`
				Fixed      string `json:"fixed"`
			} `json:"events"`
		} `json:"ranges"`
	} `json:"affected"`
}

// getDatabase returns the folder of the database, which it downloads if need be.
func getDatabase() (dir string, err error) {
	at, err := goJSON[struct{ Dir string }]("mod", "download", "-json", database)
	if err != nil || len(at) != 1 {
		return "", fmt.Errorf("download %s: %w", database, err)
	}
	return at[0].Dir, nil
}

// vulnerabilities fails if the module imports a package with a known vulnerability. Those of the standard library are
// printed: another Go cures them, which this check does not choose.
func vulnerabilities() error {
	dir, err := getDatabase()
	if err != nil {
		return err
	}
	reports, err := filepath.Glob(filepath.Join(dir, "data", "osv", "*.json"))
	if err != nil || len(reports) == 0 {
		return fmt.Errorf("%s has no reports: %w", database, err)
	}
	db, err := os.MkdirTemp("", "vulndb")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(db) }()
	if err := index(db, reports); err != nil {
		return err
	}
	cmd := exec.Command("go", "tool", "-modfile=tools/go.mod",
		"govulncheck", "-db", "file://"+db, "-scan", "package", "./...")
	cmd.Dir, cmd.Stdout, cmd.Stderr = "..", os.Stdout, os.Stderr
	return cmd.Run()
}

// index writes the database that govulncheck reads (https://go.dev/doc/security/vuln/database): each report by its
// id, and which of them a module has.
func index(db string, reports []string) error {
	type vuln struct {
		ID       string    `json:"id"`
		Modified time.Time `json:"modified"`
	}
	type module struct {
		Path  string `json:"path"`
		Vulns []vuln `json:"vulns"`
	}
	modules := map[string]*module{}
	var latest time.Time
	for _, name := range reports {
		raw, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var r report
		if err := json.Unmarshal(raw, &r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if r.ofGo(runtime.Version()) {
			fmt.Printf("%s, which builds this, has %s: %s\n", runtime.Version(), r.ID, r.Summary)
		}
		for _, a := range r.Affected {
			if path := a.Package.Name; path != "stdlib" && path != "toolchain" {
				if modules[path] == nil {
					modules[path] = &module{Path: path}
				}
				if v := (vuln{r.ID, r.Modified}); !slices.Contains(modules[path].Vulns, v) {
					modules[path].Vulns = append(modules[path].Vulns, v)
				}
			}
		}
		if r.Modified.After(latest) {
			latest = r.Modified
		}
		if err := write(filepath.Join(db, "ID", filepath.Base(name)), raw); err != nil {
			return err
		}
	}
	all := slices.SortedFunc(maps.Values(modules), func(a, b *module) int { return cmp.Compare(a.Path, b.Path) })
	list, err := json.Marshal(all)
	if err != nil {
		return err
	}
	about, err := json.Marshal(map[string]time.Time{"modified": latest})
	if err != nil {
		return err
	}
	if err := write(filepath.Join(db, "index", "modules.json"), list); err != nil {
		return err
	}
	return write(filepath.Join(db, "index", "db.json"), about)
}

// ofGo reports whether a version of Go, as go1.26.8, has a vulnerability in its standard library.
func (r *report) ofGo(version string) bool {
	version = "v" + strings.TrimPrefix(version, "go")
	for _, a := range r.Affected {
		for _, in := range a.Ranges {
			has := false
			for _, e := range in.Events { // in ascending order
				switch {
				case e.Introduced != "" && (e.Introduced == "0" || semver.Compare(version, "v"+e.Introduced) >= 0):
					has = true
				case e.Fixed != "" && semver.Compare(version, "v"+e.Fixed) >= 0:
					has = false
				}
			}
			if has && a.Package.Name == "stdlib" {
				return true
			}
		}
	}
	return false
}

func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}
