package importer

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/secrets"
)

// What was imported without its credentials does not grow by a file as it is: neither the session nor that of an agent.
func TestRedactedGrowsRedacted(t *testing.T) {
	token := "ghp" + "_Zt5Rk9Lw2Qp7Xn4Vb8Mc3Jd6Hf1Gs0TyUaEi" // of no account
	b := memory.NewAppender()
	file := agents(t, said(1), "")
	agent := filepath.Join(filepath.Dir(file), stem(file), "subagents", "agent-ab12.jsonl")
	bring := func(redact bool) (Result, error) {
		o, hooks := growing(), coppice.Hooks{}
		if o.Redact = redact; redact {
			hooks.BeforeAppend = secrets.RedactDraft
		}
		st, err := coppice.New(b, &coppice.Options{Hooks: hooks})
		if err != nil {
			t.Fatal(err)
		}
		return Import(t.Context(), st, FromFile(file), o)
	}
	if r, err := bring(true); err != nil || len(r.Children) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	p, err := os.ReadFile(agent)
	if err == nil {
		more := bytes.ReplaceAll([]byte(said(2)), []byte("done"), []byte(token))
		err = os.WriteFile(agent, append(p, more...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bring(false); !errors.Is(err, errRedacted) {
		t.Errorf("the agent's file has grown: %v", err)
	}
	if r, err := bring(true); err != nil || len(r.Children) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := st.Prove(t.Context(), token); err != nil || len(p.Found) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
}
