package codex

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden: exact entries and diagnostics of files.
func TestGolden(t *testing.T) {
	testutil.Goldens(t, *update, 3, func(t *testing.T, data []byte) string {
		r := reader(string(data))
		s := collect(t, r)
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n", s.Header.Raw)
		for _, e := range s.Entries {
			fmt.Fprintf(&b, "%s\n", e.Raw)
		}
		for _, d := range r.Diagnostics() {
			fmt.Fprintf(&b, "line %d: %s: %s\n", d.Ordinal, d.Kind, d.Detail)
		}
		return b.String()
	})
}
