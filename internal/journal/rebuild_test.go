package journal

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/transcript"
)

// known is what a state has of the session as a whole, apart from its lines.
type known struct {
	Summary  checkpoint.Summary
	Document string
	Header   string
	HeadOrd  int64
	Next     uint64
	Branches []checkpoint.BranchRef
	Claimed  uint64
	Original string
	Source   *checkpoint.Source
	Keys     []checkpoint.KeyRef
	Window   []uint64
	Rules    state.Rules
}

func knownOf(st *state.State) known {
	k := known{
		Summary: st.Summary, Document: string(st.DocJSON), Header: string(st.Header), HeadOrd: st.HeadOrd, Next: st.Next,
		Branches: st.Branches, Claimed: st.Claimed, Original: st.Original,
		Source: st.Source, Keys: st.Keys,
		Rules: st.Rules(),
	}
	if st.Window != nil {
		for _, e := range st.Window.Entries() {
			k.Window = append(k.Window, e.Ordinal)
		}
	}
	return k
}

// withoutCheckpoint opens the session after its checkpoint was lost, and puts that back afterwards.
func (w *world) withoutCheckpoint(id string) *Journal {
	w.t.Helper()
	key := layout.CheckpointKey(id)
	was := w.object(key)
	if err := w.b.Delete(w.t.Context(), key); err != nil {
		w.t.Fatal(err)
	}
	j := w.open(id)
	w.put(key, was)
	return j
}

// The log alone has all that a lost checkpoint had, at each point of a session's life: right after a new segment began,
// many segments after a claim, and with old segments sealed or not.
func TestRebuildLosesNothing(t *testing.T) {
	for _, publish := range []int{1, 1 << 20} {
		t.Run(fmt.Sprintf("a checkpoint every %d", publish), func(t *testing.T) {
			w := newWorld(t, memory.NewAppender())
			w.lim, w.inline = Limits{RollEntries: 8, PublishCommits: publish, Keyframe: 4}, true
			cfg := w.config("s1")
			cfg.Profile, cfg.MaxBytes = transcript.Atomic, 1<<21
			j := Create(cfg, state.Genesis{Header: header("s1"), Title: "t", Cwd: "/w"})
			w.closes(j)
			w.commit(j, &Step{
				Reason: "import", Original: fmt.Sprintf("%064d", 7), Source: &checkpoint.Source{Program: "pi"},
				Entries: []*Entry{say(j, "e", "x")},
			})
			title := say(j, "named", "")
			title.Raw = fmt.Appendf(nil, `{"type":"session_info","id":"named","parentId":"e","timestamp":"2026-01-01T00:00:01.000Z","name":"a title"}`)
			w.commit(j, &Step{Entries: []*Entry{title}})
			w.commit(j, &Step{Claim: true, Reason: "claim"})
			for i := range 24 {
				id := fmt.Sprintf("e%02d", i)
				step := &Step{Entries: []*Entry{say(j, id, "text of "+id)}, Edit: setState(fmt.Sprint(i))}
				switch i % 4 {
				case 1:
					step.Key = "key of " + id
				case 2:
					w.commit(j, &Step{Reason: "branch", Head: &Place{Ord: 0, ID: "e"}, Branch: "b" + id})
					step.Entries = []*Entry{say(j, id, "text of "+id)}
				case 3:
					w.commit(j, &Step{Reason: "rollback", Head: &Place{Ord: 0, ID: "e"}, Kept: "kept" + id, Keyframe: true})
					step.Entries = []*Entry{say(j, id, "text of "+id)}
				}
				w.commit(j, step)
				if publish > 1 && i == 5 { // a checkpoint, for the others to be lost after
					if err := j.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
					j = w.open("s1")
				}
				if i < 6 {
					continue
				}
				st := j.State()
				again := w.withoutCheckpoint("s1").State()
				if again.Window == nil { // rebuilt from a segment in the middle: it is read when it is needed
					st2 := *st
					st, st2.Window = &st2, nil
				}
				if diff := cmp.Diff(knownOf(st), knownOf(again)); diff != "" {
					t.Fatalf("after %s (-with, +without a checkpoint):\n%s", id, diff)
				}
			}
			if st := j.State(); st.Claimed == 0 || st.Original == "" || st.Source == nil || st.Summary.Title != "a title" || len(st.Branches) < 12 || len(st.Keys) != 6 {
				t.Errorf("the session does not have what is compared: %+v", knownOf(st))
			}
		})
	}
}

// The last 1,024 keyed commits are known after the checkpoint was lost too: a job that is tried again is not applied
// twice, however many segments ago it was.
func TestRebuildKeepsKeys(t *testing.T) {
	w := newWorld(t, memory.NewAppender())
	w.lim, w.inline = Limits{RollEntries: 64, PublishCommits: 100}, true
	j := w.create("s1")
	w.turn(j, "a", `1`)
	const n = checkpoint.MaxKeys + 70
	var seqs []uint64
	keyed := func(i int) *Step {
		return &Step{Reason: "turn", Key: fmt.Sprintf("job-%d", i), Edit: setState(fmt.Sprint(i))}
	}
	for i := range n {
		seqs = append(seqs, w.commit(j, keyed(i)).Commit.Seq)
	}
	again := w.withoutCheckpoint("s1")
	if diff := cmp.Diff(j.State().Keys, again.State().Keys); diff != "" {
		t.Fatalf("keys (-with, +without a checkpoint):\n%s", diff)
	}
	before := again.State().Summary.Head
	for _, i := range []int{n - 1, n / 2, n - checkpoint.MaxKeys} {
		if r := w.commit(again, keyed(i)); !r.Repeated || r.Commit.Seq != seqs[i] {
			t.Errorf("job %d: %+v, want the receipt of commit %d", i, r, seqs[i])
		}
	}
	if now := again.State().Summary.Head; now != before {
		t.Errorf("the head is %+v, and was %+v", now, before)
	}
}
