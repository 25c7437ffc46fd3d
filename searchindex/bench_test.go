package searchindex

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// many makes 10,000 entries in ten sessions, of a few hundred bytes each as in real ones.
func many(b *testing.B) (*coppice.Store, int64) {
	b.Helper()
	st := store(b, coppice.Hooks{})
	rng := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 4000)
	for i := range words {
		letters := make([]byte, 2+rng.IntN(9))
		for j := range letters {
			letters[j] = "etaoinshrdlucmfwypvbgkjqxz"[min(rng.IntN(26), rng.IntN(26))]
		}
		words[i] = string(letters)
	}
	text := func() string {
		var out []string
		for range 10 + rng.IntN(120) {
			out = append(out, words[min(rng.IntN(len(words)), rng.IntN(len(words)))])
		}
		return strings.Join(out, " ")
	}
	var bytes int64
	for i := range 10 {
		s := testutil.Must(st.Create(fmt.Sprint("s", i), &coppice.SessionOptions{Cwd: "/a"}))(b)
		for range 10 {
			var d []transcript.Draft
			for range 50 {
				user, assistant := text(), text()
				bytes += int64(len(user) + len(assistant))
				d = append(d, entry.User(user), entry.Assistant(assistant))
			}
			testutil.Must(s.Append(b.Context(), d...))(b)
			testutil.Must(s.Commit(b.Context(), coppice.Turn{}))(b)
		}
		testutil.OK(b, s.Close())
	}
	return st, bytes
}

// How fast 10,000 entries are indexed, and how large the index is against their text.
func BenchmarkIndex(b *testing.B) {
	st, bytes := many(b)
	b.SetBytes(bytes)
	for i := range b.N {
		x := testutil.Must(Open(b.Context(), filepath.Join(b.TempDir(), fmt.Sprint(i))))(b)
		r := testutil.Must(x.Update(b.Context(), st, nil))(b)
		if r.Entries != 10_000 {
			b.Fatal(r.Entries)
		}
		b.ReportMetric(float64(r.Entries)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
		var size float64
		testutil.OK(b,
			x.db.QueryRow("SELECT (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size)").Scan(&size))
		b.ReportMetric(size/float64(bytes), "size/text")
		testutil.OK(b, x.Close())
	}
}

// What a query costs in 10,000 entries, of each kind.
func BenchmarkQuery(b *testing.B) {
	st, _ := many(b)
	x := testutil.Must(Open(b.Context(), filepath.Join(b.TempDir(), "h.db")))(b)
	defer func() { testutil.OK(b, x.Close()) }()
	_ = testutil.Must(x.Update(b.Context(), st, nil))(b)
	var text string
	testutil.OK(b, x.db.QueryRow("SELECT text FROM entry WHERE n=5000").Scan(&text))
	words := strings.Fields(text)
	longest := words[0]
	for _, w := range words {
		if len(w) > len(longest) {
			longest = w
		}
	}
	for name, query := range map[string]string{
		"word": longest, "phrase": `"` + strings.Join(words[2:6], " ") + `"`, "common": "eta", "short": "zq", "regexp": "re:" + longest[:4] + ".*" + longest[4:],
		"regexp-all": "re:[x-z]q[x-z]",
	} {
		q := testutil.Must(Parse(query))(b)
		b.Run(name, func(b *testing.B) {
			for range b.N {
				if _, _, err := x.Search(b.Context(), q, &SearchOptions{Limit: 50}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("nothing-new", func(b *testing.B) {
		for range b.N {
			_ = testutil.Must(x.Update(b.Context(), st, nil))(b)
		}
	})
	b.Run("recall", func(b *testing.B) {
		for range b.N {
			if _, _, err := x.Recall(b.Context(), "", &RecallOptions{Limit: 50}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
