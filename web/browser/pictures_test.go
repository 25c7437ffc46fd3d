package browser

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/page"

	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/cli/demostore"
)

var update = flag.Bool("update", false, "write docs/images anew")

// maxPicture is the largest picture in docs/images, in bytes.
const maxPicture = 150_000

// Files of sessions that are made up in the form of Claude Code's and Codex's.
const (
	claudeFile = "../../interop/claudecode/testdata/newer.jsonl"
	codexFile  = "../../interop/codex/testdata/turns.jsonl"
)

// withFile serves a session that a program's file was imported as, and returns the path of its page.
func withFile(t testing.TB, file string) (s *site, path string) {
	t.Helper()
	s = newSite(t, stored(t, memory.New()))
	data, err := os.ReadFile(file)
	ok(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/import", bytes.NewReader(data))
	ok(t, err)
	resp, err := http.DefaultClient.Do(req)
	ok(t, err)
	defer func() { ok(t, resp.Body.Close()) }()
	var doc struct{ Imported []struct{ Session string } }
	ok(t, json.NewDecoder(resp.Body).Decode(&doc))
	return s, "/s/" + doc.Imported[0].Session
}

// The file of a program reads like a conversation: prompts, answers and calls are shown, and nothing that the program
// noted for itself.
func TestFilesOfPrograms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file      string
		see, miss []string
	}{
		{
			file: claudeFile,
			see:  []string{".talk article|look at the tests", ".talk article|Both are fine.", ".talk article|Nothing."},
			miss: []string{".talk article|queue-operation", ".talk article|last-prompt", ".talk article|claude-code."},
		},
		{
			file: codexFile,
			see:  []string{".talk article|List the files.", ".talk article|Two commands.", ".talk article|a and b."},
			miss: []string{".talk article|token_count", ".talk article|task_complete", ".talk article|codex."},
		},
	} {
		s, path := withFile(t, c.file)
		p := arrive(t, s, path, c.see[0])
		for _, there := range c.see {
			p.see(there)
		}
		for _, hidden := range c.miss {
			p.miss(hidden)
		}
	}
}

// picture is one of the documentation: what is pressed when the page is ready, and where it is kept.
type picture struct {
	file, path, ready, press string
	as                       look
}

// The pictures of the documentation are of the viewer as it is: with -update they are written, else they only have to
// be there, in the size in which they are taken.
func TestPictures(t *testing.T) {
	t.Parallel()
	d := withDemo(t)
	main := "/s/" + demostore.Main
	for _, pic := range []picture{
		{"home.png", "/", ".sessions li", "", wide},
		{"viewer.png", main + "?pane=map", ".map .row", "", wide},
		{"map.png", main + "?at=ec2c5948&q=limit", ".map .row.at", "n", wide},
		{"dark.png", main + "?pane=map", ".map .row", "", dark},
		{"state.png", main + "?seq=199&pane=state&path=%2Fcost", ".past-list li", "", wide},
		{"context.png", main + "?seq=150&pane=context", ".saw ol li", "", dark},
		{"compare.png", main + "?seq=150&pane=compare&with=seq%3A100", ".compare .merge", "", wide},
		{"rollback.png", main + "?seq=199&pane=state", ".state .json", "R", dark},
		{"phone.png", main, ".talk article", "", phone},
	} {
		pic.check(t, d.site)
	}
	for name, file := range map[string]string{"claude-code.png": claudeFile, "codex.png": codexFile} {
		s, path := withFile(t, file)
		picture{name, path, ".talk article", "", wide}.check(t, s)
	}
}

// check checks the picture of a page, which it takes with -update.
func (pic picture) check(t *testing.T, s *site) {
	t.Helper()
	path := filepath.Join("../../docs/images", pic.file)
	if *update {
		p := visitAs(t, s, pic.path, pic.as)
		p.wait(`document.querySelector(%s) !== null`, pic.ready)
		p.settled()
		if pic.press != "" {
			p.press(pic.press)
			p.settled()
		}
		data := call(p, page.CaptureScreenshot, page.CaptureScreenshotParams{
			Format: page.CaptureScreenshotFormatPng,
		}).Data
		ok(t, os.WriteFile(path, reduced(t, data), 0o644)) //nolint:gosec // a file of the repository
	}
	data, err := os.ReadFile(path)
	ok(t, err)
	is, _, err := image.DecodeConfig(bytes.NewReader(data))
	ok(t, err)
	if is.Width != pic.as.width || is.Height != pic.as.height || len(data) > maxPicture {
		t.Errorf("%s: %d x %d, %d bytes; want %d x %d, at most %d", path, is.Width, is.Height, len(data),
			pic.as.width, pic.as.height, maxPicture)
	}
}

// reduced returns a picture with at most 256 of its colours: half as many bytes.
func reduced(t *testing.T, data []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(data))
	ok(t, err)
	seen := map[color.RGBA]int{}
	bounds := full.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			seen[at(x, y)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(seen), func(a, b color.RGBA) int {
		return cmp.Or(seen[b]-seen[a], cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	few := image.NewPaletted(bounds, nil)
	near := map[color.RGBA]bool{} // of colours that hardly differ the most frequent one is kept
	for _, c := range all {
		if of := (color.RGBA{c.R >> 4, c.G >> 4, c.B >> 4, 0}); !near[of] && len(few.Palette) < 256 {
			near[of] = true
			few.Palette = append(few.Palette, c)
		}
	}
	index := map[color.RGBA]uint8{}
	for _, c := range all {
		index[c] = uint8(few.Palette.Index(c)) //nolint:gosec // of 256
	}
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			few.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	var b bytes.Buffer
	ok(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, few))
	return b.Bytes()
}
