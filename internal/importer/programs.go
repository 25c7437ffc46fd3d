package importer

import (
	"slices"
	"strings"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
)

// Program is a program whose sessions are looked for on this machine.
type Program struct {
	Name    string
	Folders []string // where it keeps them; they need not exist. No two programs have the same
}

// Programs returns the programs that keep sessions on this machine, by name.
func Programs(e interop.Env) []Program {
	var list []Program
	taken := []string{""}
	for p := range programs {
		found := Program{Name: p.Name}
		for _, dir := range p.Folders(e) { // where pi and omp use the same, it is pi's
			if !slices.Contains(taken, dir) {
				taken, found.Folders = append(taken, dir), append(found.Folders, dir)
			}
		}
		list = append(list, found)
	}
	slices.SortFunc(list, func(a, b Program) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return list
}

// programs yields the programs of all formats, pi first.
func programs(yield func(*interop.Program) bool) {
	for _, f := range formats.All() {
		if f.Program != nil && !yield(f.Program) {
			return
		}
	}
}

// isList reports whether a program keeps a file with this name in the folders of its sessions that holds no session.
func isList(base string) bool {
	for p := range programs {
		if slices.Contains(p.Lists, base) {
			return true
		}
	}
	return false
}

// isAgent reports whether a file has the name of the transcript of an agent.
func isAgent(file string) bool {
	for p := range programs {
		if p.Agent != nil && p.Agent(file) {
			return true
		}
	}
	return false
}

// isBeside reports whether a reader asks for a file, or else for the names in a folder, outside of the folder of a
// session's file.
func isBeside(path string, file bool) bool {
	for p := range programs {
		asks := p.ListsBeside
		if file {
			asks = p.Beside
		}
		if asks != nil && asks(path) {
			return true
		}
	}
	return false
}

// OwnerOf returns the file of the session with which the file of an agent is read; "" = the file is read alone.
func OwnerOf(file string) string {
	for p := range programs {
		if p.Owner == nil {
			continue
		}
		if owner := p.Owner(file); owner != "" {
			return owner
		}
	}
	return ""
}
