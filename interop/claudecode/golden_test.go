package claudecode

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden: exact entries, children and diagnostics of files, and the files written from them.
func TestGolden(t *testing.T) {
	testutil.Goldens(t, *update, 5, func(t *testing.T, data []byte) string {
		s, r := read(t, string(data))
		var b strings.Builder
		show := func(what string, s session) {
			fmt.Fprintf(&b, "%s %s\n", what, s.Header.Raw)
			for _, e := range s.Entries {
				fmt.Fprintf(&b, "%s\n", e.Raw)
			}
		}
		show("session", s)
		for _, c := range children(t, r) {
			show("child", c)
		}
		for _, d := range r.Diagnostics() {
			fmt.Fprintf(&b, "line %d: %s: %s\n", d.Ordinal, d.Kind, d.Detail)
		}
		b.WriteString("written\n")
		losses, err := Write(&b, s.Header, drafts(&s))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "losses %v\n", losses)
		return b.String()
	})
}
