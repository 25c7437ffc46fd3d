package browser

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// soak is how long the long form of the tests lasts (COPPICE_SOAK, such as 60s); 0 = the short form is run.
var soak, _ = time.ParseDuration(os.Getenv("COPPICE_SOAK"))

// followed is read in the page: every commit of its streams, in the order in which it came.
const followed = `(() => {
	const got = (window.__commits = []), real = window.fetch;
	window.fetch = async (...args) => {
		const answer = await real(...args);
		if (!new URL(args[0].url ?? args[0], location.href).pathname.endsWith("/events")) return answer;
		const [ours, theirs] = answer.body.tee();
		(async () => {
			let rest = "";
			for await (const text of ours.pipeThrough(new TextDecoderStream())) {
				const blocks = (rest + text).split("\n\n");
				rest = blocks.pop();
				for (const b of blocks) {
					const data = /^data: ?(.*)$/m.exec(b);
					if (/^event: ?commit$/m.test(b) && data) got.push(JSON.parse(data[1]).seq);
				}
			}
		})().catch(() => {});
		return new Response(theirs, { status: answer.status, headers: answer.headers });
	};
})()`

// Two browsers read while an agent works and a person writes in one of them, and every connection is cut now and then.
// In the end both show the path that is stored; no commit is missed, and none comes twice.
func TestTwoBrowsersAndAnAgent(t *testing.T) {
	t.Parallel()
	s := withBundled(t)
	lasts := max(soak, 3*time.Second)
	tabs := []*tab{newTab(t, s, wide), newTab(t, s, phone)}
	for _, p := range tabs {
		p.allow("ERR_|Failed to fetch|NetworkError|status of 412")
		before(p, followed)
		p.navigate("/s/" + bundled)
		p.see(".talk article|" + newest)
		p.settled()
	}
	first := s.head(bundled).Seq
	ctx, end := context.WithTimeout(t.Context(), lasts)
	defer end()
	agent := make(chan error, 1)
	go func() { agent <- s.works(ctx) }()
	cut := time.NewTicker(min(lasts/4, 2*time.Second))
	defer cut.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		select {
		case <-cut.C:
			s.cut()
		case <-ctx.Done():
		}
		p := tabs[n%2] // a person who looks here and there
		eval[bool](p, `(document.querySelector(".scroller").scrollTop -= 400) > -1`)
	}
	ok(t, <-agent)
	last := s.says(bundled, "The agent is done.").Seq
	for _, p := range tabs {
		p.until("the newest commit", func() (bool, error) {
			return try[bool](p, fmt.Sprintf(`window.__commits.at(-1) === %d`, last))
		})
		p.press("G")
		p.see(".talk article|The agent is done.")
		p.samePath(bundled)
		seen := map[uint64]int{}
		got := eval[[]uint64](p, `window.__commits`)
		for _, seq := range got {
			seen[seq]++
		}
		for seq := first + 1; seq <= last; seq++ {
			if seen[seq] == 0 {
				t.Errorf("commit %d never came", seq)
			}
		}
		if len(got) != len(seen) {
			t.Errorf("of %d commits %d came again after a cut", len(seen), len(got)-len(seen))
		}
		t.Logf("%d commits", last-first)
	}
	if a, b := tabs[0].keys(), tabs[1].keys(); !sameEnd(a, b) {
		t.Errorf("the browsers end differently: %v and %v", a, b)
	}
}

// keys returns the entries that are in sight.
func (p *tab) keys() []string {
	p.t.Helper()
	return eval[[]string](p, `[...document.querySelectorAll(".talk article")].map((e) => e.dataset.key)`)
}

func sameEnd(a, b []string) bool {
	n := min(len(a), len(b), 3)
	for i := 1; i <= n; i++ {
		if a[len(a)-i] != b[len(b)-i] {
			return false
		}
	}
	return n > 0
}

// works commits turns, some of which lose and are kept as branches, until the context is done.
func (s *site) works(ctx context.Context) (err error) {
	h, err := s.store.Open(context.WithoutCancel(ctx), bundled, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	r := rand.New(rand.NewPCG(7, 7))
	pause := time.NewTicker(40 * time.Millisecond)
	defer pause.Stop()
	base := ""
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
		turn := coppice.Turn{Entries: drafts(entry.Assistant(fmt.Sprintf("Step %d.", n)))}
		if r.IntN(8) == 0 && base != "" {
			turn.Base, turn.KeepBoth = base, true
		}
		base = h.Head().Commit
		if _, err := h.Commit(context.WithoutCancel(ctx), turn); err != nil {
			return err
		}
	}
}
