package export_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/export"
	"github.com/coppice-go/coppice/transcript"
)

// A session as text for people, and as one page without scripts and requests.
func Example() {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	s, err := store.Create("tides", &coppice.SessionOptions{Title: "Tides"})
	if err != nil {
		panic(err)
	}
	if _, err := s.Append(ctx, entry.User("When is high water?"), entry.Assistant("At **11:42**.")); err != nil {
		panic(err)
	}
	if _, err := s.Commit(ctx, coppice.Turn{}); err != nil {
		panic(err)
	}

	var text, page bytes.Buffer
	if err := export.Markdown(ctx, s, &text, nil); err != nil {
		panic(err)
	}
	for line := range strings.Lines(text.String()) {
		if strings.ContainsAny(line[:1], "#>") {
			fmt.Print(line) // the others have ids and times
		}
	}
	if err := export.HTML(ctx, s, &page, &export.Options{Filter: transcript.FilterUserOnly}); err != nil {
		panic(err)
	}
	fmt.Println("page:", strings.Contains(page.String(), "When is high water?"), strings.Contains(page.String(), "<script"))
	// Output:
	// # Tides
	// ## user
	// > When is high water?
	// ## assistant
	// > At **11:42**.
	// page: true false
}
