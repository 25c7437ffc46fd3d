package hostile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/transcript"
)

// secret marks all content of a caller's users: no error, log or report may contain it.
const secret = "s3cr3t-"

// ear collects errors, logs and reports.
type ear struct {
	a    *attack
	said strings.Builder
	n    int
}

func (e *ear) err(what string, err error) {
	if err == nil {
		return
	}
	e.n++
	fmt.Fprintf(&e.said, "%s: %v | %+v | %#v\n", what, err, err, err)
	for ; err != nil; err = errors.Unwrap(err) {
		fmt.Fprintf(&e.said, "%v\n", err)
	}
}

// wanted records the error of a call that has to fail.
func (e *ear) wanted(what string, err error) {
	if err == nil {
		e.a.broken("%s: no error", what)
	}
	e.err(what, err)
}

// leaks commits secrets, provokes every kind of error, and searches all output for them.
func leaks(a *attack) {
	for name, make := range map[string]func() backend.Backend{
		"replace": func() backend.Backend { return memory.New() },
		"append":  func() backend.Backend { return memory.NewAppender() },
		"local": func() backend.Backend {
			b, err := local.Open(a.TempDir(), nil)
			a.must(err)
			a.Cleanup(func() { _ = b.Close() })
			return b
		},
	} {
		e := &ear{a: a}
		inner := make()
		f := fault.New(inner, 1)
		st, err := coppice.New(f, nil)
		a.must(err)
		rejected(e, st)
		contested(e, st, f)
		damaged(e, inner)
		_ = st.Close() // it counts uncommitted entries
		if at := strings.Index(e.said.String(), secret); at >= 0 {
			text := e.said.String()
			a.broken("%s: a secret in: %s", name, text[max(0, strings.LastIndexByte(text[:at], '\n')+1):min(len(text), at+40)])
		}
		a.try(e.n)
	}
	onScreen(a)
}

// say commits secrets of every kind.
func say(ctx context.Context, s *coppice.Session, key string) error {
	if _, err := s.Append(ctx, entry.User(secret+"text "+key), entry.Message(json.RawMessage(`{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"t","arguments":{"k":"`+secret+`args"}}]}`)), entry.Custom("x", secret+"data")); err != nil {
		return err
	}
	_, err := s.Commit(ctx, coppice.Turn{State: map[string]string{"token": secret + "state"}, Manager: secret + "manager", Key: secret + "key-" + key})
	return err
}

// rejected provokes errors of invalid input.
func rejected(e *ear, st *coppice.Store) {
	a, ctx := e.a, e.a.Context()
	s := a.session(st, "rejected")
	defer func() { _ = s.Close() }()
	a.must(say(ctx, s, "1"))
	for what, d := range map[string]transcript.Draft{
		"a message that is no object": entry.Message(secret + "x"), "a message that is no JSON": entry.Message(json.RawMessage(`{"role":"` + secret + `","content":` + secret + `}`)),
		"a line that is no JSON": entry.Line([]byte(`{"type":"message","id":"x","` + secret)), "a line of something else": entry.Line([]byte(`["` + secret + `"]`)), "two lines": entry.Line([]byte("{\"a\":\"" + secret + "\"}\n{}")),
		"a body that sets an id": {Type: "custom", Body: json.RawMessage(`{"id":"` + secret + `"}`)}, "a body that is none": {Type: "custom", Body: json.RawMessage(secret)}, "what does not marshal": entry.Custom("x", map[string]any{secret: func() {}}),
		"a line of 5 MiB": entry.User(strings.Repeat(secret, 5<<20/len(secret))), "a deep one": entry.Message(json.RawMessage(`{"` + secret + `":` + nested("[", "]", 600) + `}`)),
	} {
		_, err := s.Append(ctx, d)
		if err == nil { // a limit is checked by the commit
			_, err = s.Commit(ctx, coppice.Turn{})
			e.err("reload", s.Reload(ctx))
		}
		e.wanted(what, err)
	}
	for what, t := range map[string]coppice.Turn{
		"a state of 5 MiB": {State: strings.Repeat(secret, 5<<20/len(secret))}, "a state that is no JSON": {State: json.RawMessage(`{"` + secret + `":`)}, "a state that does not marshal": {State: map[string]any{secret: make(chan int)}},
		"a deep state": {State: json.RawMessage(`{"` + secret + `":` + nested("[", "]", 600) + `}`)}, "a manager that is no JSON": {Manager: json.RawMessage(secret)}, "a key of 300 bytes": {State: 1, Key: strings.Repeat(secret, 50)},
	} {
		_, err := s.Commit(ctx, t)
		e.wanted(what, err)
	}
	var number int
	e.wanted("a state of another type", s.State(&number))
	_, err := s.At(ctx, coppice.Target{Seq: 99})
	e.wanted("a seq that is not there", err)
	_, err = st.Create("rejected", nil)
	a.must(err)
	e.wanted("an id that is taken", say(ctx, a.session(st, "rejected"), "2"))
	for line := range st.List(ctx, coppice.ListOptions{}) {
		_ = line
	}
	_, err = st.Import(ctx, drafts([]string{head, `{"type":"message","id":"x","message":{"content":"` + secret + `"`}), &coppice.SessionOptions{ID: "broken"})
	e.wanted("an import of what is no JSON", err)
	ro, err := st.Open(ctx, "rejected", &coppice.SessionOptions{ReadOnly: true})
	a.must(err)
	e.wanted("a handle that only reads", say(ctx, ro, "3"))
	a.must(ro.Close())
	e.wanted("a closed handle", say(ctx, ro, "4"))
}

// contested provokes the errors of a conflict with another writer and of a failing store.
func contested(e *ear, st *coppice.Store, f fault.Backend) {
	a, ctx := e.a, e.a.Context()
	one := a.session(st, "contested")
	a.must(say(ctx, one, "1"))
	two, err := st.Open(ctx, "contested", nil)
	a.must(err)
	a.must(say(ctx, one, "2"))
	e.wanted("a conflict", say(ctx, two, "3"))
	_, err = two.Commit(ctx, coppice.Turn{KeepBoth: true})
	e.err("keep both", err)
	_, err = two.Settle(ctx, "")
	e.err("settle", err)
	_, err = two.Claim(ctx)
	e.err("claim", err)
	e.wanted("a fenced writer", say(ctx, one, "4"))
	e.err("reload", one.Reload(ctx))
	for what, kind := range map[string]fault.Kind{"an answer that is lost": fault.After, "a store that does not answer": fault.Before, "a read that is damaged": fault.Damage} {
		f.Add(fault.Rule{Count: -1, Kind: kind})
		func() {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond) // otherwise it would retry for long
			defer cancel()
			e.err(what, say(ctx, one, what))
			_, err := st.Open(ctx, "contested", nil)
			e.err(what, err)
			_, err = st.Verify(ctx, "contested", true)
			e.err(what, err)
			e.err(what, st.Delete(ctx, "nothing"))
		}()
		f.Clear()
		e.err(what, one.Close())
		one, err = st.Open(ctx, "contested", nil)
		e.err(what, err)
		if err != nil {
			return
		}
	}
	e.err("close", one.Close())
	e.err("close", two.Close())
}

// damaged flips a bit in every object, at some offsets, and reads.
func damaged(e *ear, b backend.Backend) {
	a, ctx := e.a, e.a.Context()
	for key, p := range a.objects(b) {
		places := a.size(1, 12, 200)
		for i := range places {
			bad := append([]byte(nil), p...)
			bad[len(p)*(2*i+1)/(2*places)] ^= 1 << (i % 8)
			a.put(b, key, bad)
			st := a.store(b)
			for _, id := range []string{"rejected", "contested"} {
				s, err := st.Open(ctx, id, nil)
				e.err("open", err)
				if err == nil {
					e.err("append", say(ctx, s, "after"))
					_ = s.Close()
				}
				r, err := st.Verify(ctx, id, true)
				e.err("verify", err)
				for _, problem := range r.Problems {
					e.err("problem", problem)
				}
				r, err = st.Repair(ctx, id, true)
				e.err("repair", err)
				for _, problem := range r.Problems {
					e.err("problem", problem)
				}
			}
			a.put(b, key, p)
		}
	}
}

// onScreen checks the error output of the command line.
func onScreen(a *attack) {
	store := a.TempDir()
	if _, errs, code := a.coppice(store, "", "create", "--session", "s"); code != 0 {
		a.Fatal(errs)
	}
	for _, input := range []string{`{"role":"user","content":"` + secret, secret, `["` + secret + `"]`, `{"type":"message","id":"x","parentId":"nowhere","message":{"content":"` + secret + `"}}`} {
		out, errs, code := a.coppice(store, input, "append", "s")
		if code == 0 || strings.Contains(out+errs, secret) {
			a.broken("append ends with %d and says %q %q", code, out, errs)
		}
		out, errs, code = a.coppice(store, input, "--json", "append", "s", "--state", "-")
		if code == 0 && !json.Valid([]byte(input)) || strings.Contains(out+errs, secret) {
			a.broken("append ends with %d and says %q %q", code, out, errs)
		}
		a.try(2)
	}
}
