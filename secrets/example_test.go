package secrets_test

import (
	"context"
	"fmt"
	"log"
	"os"

	coppice "github.com/coppice-go/coppice"
	_ "github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/secrets"
)

// key has the form of a token. It opens nothing.
const key = "gh" + "p_x7Kq2mZp9RtV4wYb8NcL3sDf6GhJ5kQaE1uT"

// With the hook no credential that the rules find reaches a store, by commits or imports. State and documents do not
// pass the hook: RedactJSON is for them.
func ExampleRedactDraft() {
	ctx := context.Background()
	store, err := coppice.Open(ctx, "mem:", &coppice.Options{Hooks: coppice.Hooks{BeforeAppend: secrets.RedactDraft}})
	if err != nil {
		log.Fatal(err)
	}
	s, err := store.Create("s", nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.Append(ctx, entry.User("use "+key)); err != nil {
		log.Fatal(err)
	}
	if _, err := s.Commit(ctx, coppice.Turn{}); err != nil {
		log.Fatal(err)
	}
	for e, err := range s.Entries(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		text, _ := manager.Prompt(e)
		fmt.Println(text)
	}
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: use [secret: github-pat]
}

func ExampleRedactJSON() {
	state, found := secrets.RedactJSON([]byte(`{"env":["A=1","TOKEN=` + key + `"]}`))
	fmt.Println(string(state))
	for _, p := range found {
		fmt.Println(p.Path, p.Rule, p.Preview)
	}
	fmt.Println(len(secrets.FindJSON(state)))
	// Output:
	// {"env":["A=1","TOKEN=[secret: github-pat]"]}
	// /env/1 github-pat ghp_… (40 bytes)
	// 0
}

func ExampleRedact() {
	text, _ := secrets.Redact("push with " + key + ".")
	fmt.Println(text)
	for _, f := range secrets.Find("push with " + key + ".") {
		fmt.Println(f.Rule, f.Start, f.End, secrets.Stub(f.Rule))
	}
	// Output:
	// push with [secret: github-pat].
	// github-pat 10 50 [secret: github-pat]
}

func ExampleNewWriter() {
	w := secrets.NewWriter(os.Stdout)
	fmt.Fprintln(w, `{"token":"`+key+`"}`)
	fmt.Fprintln(w, "a line of text")
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.By)
	// Output:
	// {"token":"[secret: github-pat]"}
	// a line of text
	// map[github-pat:1]
}
