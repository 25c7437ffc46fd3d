package archtest

import (
	"fmt"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// edge lists what one folder may import. The standard library is always allowed.
type edge struct {
	dir  string   // folder; "" = root, "x/..." = x and all below it
	ours []string // folders of this module, in the form of dir
	ext  []string // other modules, as in go.mod
}

// The folders that each layer may import: the layers below it, in the order of the design.
var (
	pure     = []string{"codec", "transcript/...", "entry", "checkpoint", "snapshot"}
	storage  = []string{"backend", "internal/trace"}
	format   = []string{"internal/layout", "internal/segment"}
	log      = join(format, "internal/journal", "internal/journal/state", "internal/journal/store")
	reading  = []string{"codec", "internal/blob", "internal/rawjson", "transcript/..."} // of session files
	parsing  = join(reading, "interop", "interop/internal/...")
	anywhere = join(pure, "", "backend/...", "export", "manager", "provider", "searchindex", "secrets", "interop/...",
		"internal/...", "examples/...", "server")
)

const (
	uuid     = "github.com/google/uuid"
	humane   = "github.com/dustin/go-humanize"
	huma     = "github.com/danielgtaylor/huma/v2"
	goldmark = "github.com/yuin/goldmark"
	xSys     = "golang.org/x/sys"
	xTerm    = "golang.org/x/term"
	zstd     = "github.com/klauspost/compress"
	msgpack  = "github.com/vmihailenco/msgpack/v5"
)

// table is the import rule of the module: imports point one way. The most specific line is used. A line also covers the
// folders below its own, as parts of one layer. A folder without a line is a finding, so that a new layer needs a
// decision.
var table = []edge{
	{dir: "codec", ext: []string{zstd, msgpack}},
	{dir: "internal/blob", ours: []string{"internal/rawjson"}},
	{dir: "internal/fold"},
	{dir: "internal/fault", ours: []string{"backend"}},
	{dir: "internal/parallel"},
	{dir: "internal/rawjson", ours: []string{"codec"}},
	{dir: "internal/shortid"},
	{dir: "internal/testutil"},
	{dir: "internal/trace", ours: []string{"backend"}},
	{dir: "internal/vfs", ext: []string{xSys}},
	{dir: "internal/audit", ours: []string{"internal/vfs"}},
	{
		dir:  "transcript",
		ours: []string{"codec", "internal/fold", "internal/message", "internal/rawjson", "internal/shortid"},
		ext:  []string{uuid},
	},
	{dir: "internal/rows", ours: []string{"transcript"}},
	{dir: "transcript/view", ours: []string{"transcript", "internal/rows"}},
	{dir: "entry", ours: []string{"internal/rawjson", "transcript"}},
	{
		dir: "checkpoint", ours: []string{"codec", "internal/rawjson", "transcript"},
		ext: []string{uuid, "github.com/wI2L/jsondiff", "github.com/evanphx/json-patch/v5"},
	},
	{dir: "snapshot", ours: []string{"codec", "transcript", "checkpoint"}},
	{dir: "secrets", ours: []string{"internal/rawjson", "transcript"}},

	{dir: "backend"},
	{dir: "backend/backendtest", ours: storage, ext: []string{"github.com/google/go-cmp"}},
	{dir: "backend/local", ours: []string{"backend", "internal/vfs"}, ext: []string{xSys}},
	{
		dir: "backend/s3", ours: []string{"backend"},
		ext: []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go"},
	},
	{dir: "backend/...", ours: []string{"backend"}},

	{dir: "internal/casprobe", ours: []string{"backend", "internal/layout"}},
	{dir: "internal/layout", ours: join(pure, "backend")},
	{dir: "internal/segment", ours: join(pure, "internal/layout")},
	{dir: "internal/branch", ours: []string{"transcript"}},
	{dir: "internal/journal/state", ours: join(pure, "backend", "internal/blob", "internal/rawjson",
		"internal/segment")},
	{dir: "internal/journal/store", ours: join(pure, "backend", format, "internal/parallel", "internal/journal/state")},
	{
		dir: "internal/journal", ours: join(pure, storage, format, "internal/blob", "internal/branch",
			"internal/parallel", "internal/journal/..."),
		ext: []string{uuid},
	},
	{dir: "internal/seam", ours: []string{"internal/journal"}},
	{dir: "internal/sessiontest", ours: anywhere},
	{dir: "internal/lifecycle"}, // these contain only tests
	{dir: "internal/scenarios"},
	{dir: "internal/transfer", ours: join(pure, "backend", "internal/blob", "internal/layout", "internal/rawjson",
		"internal/journal/...", "internal/journal", "internal/segment")},
	{dir: "internal/listing", ours: join(pure, "backend", "internal/layout", "internal/parallel")},
	{dir: "internal/check", ours: join(pure, storage, log, "internal/blob", "internal/journal/...")},
	{dir: "internal/gc", ours: join(pure, storage, log, "internal/check")},
	{
		dir: "internal/erase", ours: join(pure, "backend", format, "internal/blob", "internal/rawjson",
			"internal/journal", "internal/journal/...", "internal/check"), ext: []string{zstd},
	},
	{dir: "internal/repair", ours: join(pure, storage, log, "internal/blob", "internal/journal/...", "internal/check")},
	{dir: "", ours: join(pure, storage, log, "internal/transfer", "internal/casprobe", "internal/listing",
		"internal/check", "internal/erase", "internal/gc", "internal/repair", "internal/blob", "internal/parallel",
		"internal/rawjson", "internal/seam", "internal/shortid"), ext: []string{uuid}},

	{dir: "internal/message", ours: []string{"internal/rawjson"}},
	{
		dir:  "export",
		ours: join(pure, "", "internal/message", "internal/rawjson", "manager"), ext: []string{goldmark, humane},
	},
	{dir: "manager", ours: join(pure, "", "internal/erase", "internal/fold", "internal/layout", "internal/message",
		"internal/rawjson", "internal/shortid", "secrets")},
	{dir: "provider", ours: []string{"transcript", "internal/message", "internal/rawjson"}},
	{
		dir: "searchindex", ours: join(pure, "", "internal/fold", "internal/message"),
		ext: []string{"modernc.org/sqlite"},
	},
	{dir: "interop", ours: []string{"transcript/..."}},
	{dir: "interop/internal/jsonl", ours: reading},
	{dir: "interop/internal/piwriter", ours: join(reading, "interop", "internal/message")},
	{dir: "interop/internal/homes", ours: []string{"interop"}},
	{dir: "interop/formats", ours: join(parsing, "interop/...", "internal/message")},
	{ // a reader and writer of one program's files
		dir:  "interop/...",
		ours: join(parsing, "interop/pi", "internal/fold", "internal/message", "internal/parallel"),
		ext:  []string{uuid, zstd},
	},
	{dir: "internal/api", ours: join(pure, "", "backend", "manager", "provider", "searchindex", "interop",
		"internal/branch", "internal/check", "internal/importer", "internal/layout", "internal/rawjson",
		"internal/retain", "internal/rows", "secrets")},
	{
		dir: "server", ours: join(pure, "", "backend", "export", "manager", "provider", "searchindex", "interop/...",
			"internal/api", "internal/audit", "internal/blob", "internal/exporter", "internal/fold",
			"internal/importer", "internal/layout", "internal/mcp", "internal/rawjson", "internal/retain",
			"internal/rows", "internal/seam", "internal/shortid", "secrets"),
		ext: []string{huma, zstd, uuid, "github.com/VictoriaMetrics/metrics"},
	},
	{dir: "internal/retain", ours: []string{
		"", "backend", "checkpoint", "internal/layout", "internal/seam", "internal/trace", "snapshot",
	}},
	{dir: "internal/mcp", ours: []string{"internal/api", "searchindex", "secrets", "transcript"}},
	{dir: "internal/cli", ours: anywhere, ext: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", uuid}},
	{dir: "internal/cli/demostore", ours: join(pure, "", "backend", "examples/..."), ext: []string{zstd}},
	{
		dir: "internal/exporter",
		ours: join(pure, "", "export", "internal/parallel", "internal/rawjson", "internal/segment", "interop/...",
			"secrets"),
	},
	{
		dir:  "internal/importer",
		ours: join(pure, "", "internal/journal", "internal/layout", "internal/rawjson", "interop/...", "secrets"),
		ext:  []string{uuid, zstd},
	},
	{ // a database of SqliteSaver is read as its program has written it
		dir:  "internal/importer/langgraph",
		ours: join(pure, "", "internal/importer", "internal/rawjson"), ext: []string{"modernc.org/sqlite"},
	},
	{
		dir: "internal/cli/term", ours: join(pure, "internal/branch", "internal/message", "internal/rawjson",
			"internal/rows", "internal/shortid"),
		ext: []string{"github.com/schollz/progressbar/v3", humane, xTerm},
	},
	{
		dir:  "internal/cli/tui",
		ours: []string{"", "internal/cli/term", "manager", "transcript/..."}, ext: []string{"charm.land/bubbletea/v2"},
	},
	{dir: "internal/watch", ext: []string{"github.com/fsnotify/fsnotify"}},
	{
		dir: "internal/cli/clitest", ours: []string{"examples/...", "internal/testutil"},
		ext: []string{"github.com/rogpeppe/go-internal"},
	},
	{dir: "cmd/...", ours: join(pure, "", "backend/...", "internal/cli")},
	{dir: "examples/...", ours: join(pure, "", "backend/...", "interop/...", "examples/...")},
	{dir: "internal/archtest"},
	{dir: "internal/proof/...", ours: anywhere, ext: []string{"github.com/anishathalye/porcupine"}},
}

// testModules are the modules that tests may import in addition to those of their package. Tests may import every
// folder of this module.
var testModules = []string{
	"github.com/creack/pty",
	"github.com/google/go-cmp",
	"github.com/rogpeppe/go-internal",
	"go.uber.org/goleak",
	"pgregory.net/rapid",
}

func join(base []string, more ...any) []string {
	out := append([]string(nil), base...)
	for _, m := range more {
		switch m := m.(type) {
		case string:
			out = append(out, m)
		case []string:
			out = append(out, m...)
		}
	}
	return out
}

// ruleFor returns the line of the table for a folder: its own, else the longest one that covers it.
func ruleFor(dir string) (edge, bool) {
	best, found := edge{}, false
	for _, e := range table {
		if e.dir == dir {
			return e, true
		}
		base := strings.TrimSuffix(e.dir, "/...")
		if !below(dir, base) {
			continue
		}
		// "x/..." and "x" are equally long if both are in the table; folders below x have the former.
		if !found || len(e.dir) > len(best.dir) {
			best, found = e, true
		}
	}
	return best, found
}

// below reports whether a folder is another one or is in it. No folder is below the root package.
func below(dir, base string) bool {
	return dir == base || base != "" && strings.HasPrefix(dir, base+"/")
}

// covers reports whether a pattern of the table, "x" or "x/...", names the folder.
func covers(pattern, dir string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return below(dir, base)
	}
	return pattern == dir
}

func checkImports(fset *token.FileSet, p *pkg) []Finding {
	rule, ok := ruleFor(p.dir)
	if !ok {
		return []Finding{{
			Rule: "import", Place: p.dir,
			Text: "no line in the import table of internal/archtest; which layer is it?",
		}}
	}
	var out []Finding
	for _, f := range p.files {
		for _, spec := range f.ast.Imports {
			target, err := strconv.Unquote(spec.Path.Value)
			if err != nil || rule.allows(p.dir, target, f.test) {
				continue
			}
			out = append(out, Finding{
				Rule: "import", Place: placeOf(fset, spec.Pos()),
				Text: fmt.Sprintf("%s may not import %s", display(p.dir), target),
			})
		}
	}
	return out
}

// allows reports whether a package in dir may import a path.
func (e edge) allows(dir, target string, test bool) bool {
	if target == ModulePath || strings.HasPrefix(target, ModulePath+"/") {
		if test {
			return true
		}
		return e.allowsFolder(dir, strings.TrimPrefix(strings.TrimPrefix(target, ModulePath), "/"))
	}
	first, _, _ := strings.Cut(target, "/")
	if !strings.Contains(first, ".") {
		return true // the standard library
	}
	modules := e.ext
	if test {
		modules = join(e.ext, testModules)
	}
	return slices.ContainsFunc(modules, func(module string) bool { return below(target, module) })
}

// allowsFolder reports whether a folder of this module may be imported: one that the line names, or a part of the same
// layer, which is a folder that the same line covers.
func (e edge) allowsFolder(dir, target string) bool {
	for _, pattern := range e.ours {
		if covers(pattern, target) {
			return true
		}
	}
	if strings.HasSuffix(e.dir, "/...") {
		return below(target, dir)
	}
	layer, ok := ruleFor(target)
	return ok && layer.dir == e.dir
}

func display(dir string) string {
	if dir == "" {
		return "the root package"
	}
	return dir
}
