package hostile

import (
	"errors"
	"hash/maphash"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/trace"
)

// pieces are what hostile ids are made of.
var pieces = strings.Split(`..|.|/|\|%2e%2e|%00|~|$HOME|CON|con|nul.txt|LPT1|aux|:|*|?|"|<|>|ä|`+"\u0130|\u212a|\u00df|e\u0301|\u202e|\u2215|\uff0e"+`|_|__|_a|_A|A|a|B|b|-|0|z|Z|.lock|.tmp|checkpoint_latest|sessions`, "|")

var exact = []string{
	"", ".", "..", "../x", "/etc/passwd", `..\x`, `C:\x`, "\x00", "a\x00b", "CON", "con", "a.", ".a", "a/../b", "-", "_", "__", strings.Repeat("A", 128), strings.Repeat("a", 128),
	strings.Repeat("_", 128), strings.Repeat("A", 127) + "_", strings.Repeat("x", 129), strings.Repeat("x", 300), "a\nb", "a b", "\xff\xfe", "\u2025/x", "Ａ", "checkpoint_latest", "sessions", "cas",
}

// oddID makes an id that nobody should trust; about one of three is valid.
func oddID(rng *rand.Rand) string {
	const letters = "aAbB_-.zZ09"
	var b strings.Builder
	switch rng.IntN(6) {
	case 0: // nothing but what is valid, and much of it that has to be escaped
		for range 1 + rng.IntN(12) {
			b.WriteByte(letters[rng.IntN(len(letters))])
		}
	case 1:
		for range 100 + rng.IntN(40) {
			b.WriteByte("AZ_Q"[rng.IntN(4)])
		}
	case 2:
		for range 1 + rng.IntN(300) {
			b.WriteByte(byte(rng.Uint32()))
		}
	default:
		for range 1 + rng.IntN(5) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
	}
	return b.String()
}

// oddIDs: of a million ids each is refused before anything is asked of the store, or has a name of its own,
// below the two folders that names are made for, which no file system that folds case takes for another's.
func oddIDs(a *attack) {
	rng := rand.New(rand.NewPCG(1, 3))
	b := trace.New(memory.New())
	st := a.store(b)
	seed := maphash.MakeSeed()
	owner := map[uint64]uint64{} // the folded name, and whose it is
	for i := range a.size(5_000, 1_000_000, 10_000_000) {
		id := oddID(rng)
		if i < len(exact) {
			id = exact[i]
		}
		if layout.ValidID(id) != nil {
			if _, err := st.Create(id, nil); err == nil && id != "" {
				a.broken("%s is taken for an id", quoted(id))
			}
			if i%64 == 0 || i < len(exact) {
				refused(a, st, id)
			}
			continue
		}
		name := layout.Escape(id)
		for _, key := range []string{layout.CheckpointKey(id), layout.SessionPrefix(id) + "x"} {
			if err := backend.ValidKey(key); err != nil || !filepath.IsLocal(key) || filepath.ToSlash(filepath.Clean(key)) != key {
				a.broken("%s has the key %q: %v", quoted(id), key, err)
			}
		}
		folded, own := maphash.String(seed, strings.ToLower(name)), maphash.String(seed, id)
		if other, taken := owner[folded]; taken && other != own {
			a.broken("%s shares the name %q with another", quoted(id), name)
		}
		owner[folded] = own
		if back, ok := layout.Unescape(name); !ok || back != id {
			a.broken("%s comes back as %q", quoted(id), back)
		}
	}
	a.try(a.size(5_000, 1_000_000, 10_000_000))
	if io := b.IO(); io != (backend.IO{}) {
		a.broken("for ids that are none the store was asked %+v", io)
	}
}

// refused hands an id that is none to every method that takes one.
func refused(a *attack, st *coppice.Store, id string) {
	ctx := a.Context()
	_, open := st.Open(ctx, id, nil)
	_, both := st.OpenOrCreate(ctx, id, nil)
	if id == "" {
		both = nil // a new one
	}
	for what, err := range map[string]error{"open": open, "open or create": both, "delete": st.Delete(ctx, id), "export": st.Export(ctx, id, nil), "exportPi": st.ExportPi(ctx, id, nil)} {
		if err == nil && (id != "" || what != "open or create") {
			a.broken("%s takes %s for an id", what, quoted(id))
		}
	}
}

// idsOnDisk: a sample of the same ids on a disk. Each session has its own bytes, and outside of the store's
// folder nothing happens. The driver itself is asked for what no id becomes.
func idsOnDisk(a *attack) {
	outer := a.TempDir()
	root := filepath.Join(outer, "store")
	a.must(os.WriteFile(filepath.Join(outer, "secret"), []byte("outside"), 0o600))
	b, err := local.Open(root, nil)
	a.must(err)
	defer func() { _ = b.Close() }()
	st := a.store(b)
	rng := rand.New(rand.NewPCG(2, 3))
	var ids []string
	seen := map[string]bool{}
	for len(ids) < a.size(12, 200, 2000) {
		if id := oddID(rng); layout.ValidID(id) == nil && !seen[id] {
			seen[id], ids = true, append(ids, id)
		}
	}
	var all sync.WaitGroup
	for part := range 8 {
		all.Go(func() {
			for i := part; i < len(ids); i += 8 {
				writeOwn(a, st, ids[i])
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		s, err := st.Open(a.Context(), id, nil)
		if err != nil {
			a.broken("%s: %v", quoted(id), err)
			continue
		}
		var own string
		if err := s.State(&own); err != nil || own != id || s.ID() != id {
			a.broken("%s has the state of %s: %v", quoted(id), quoted(own), err)
		}
	}
	for info, err := range st.List(a.Context(), coppice.ListOptions{}) {
		if err != nil || !seen[info.ID] {
			a.broken("the list has %s: %v", quoted(info.ID), err)
		}
		delete(seen, info.ID)
	}
	if len(seen) > 0 {
		a.broken("%d sessions are not in the list", len(seen))
	}
	a.try(len(ids))
	keysOutside(a, b)
	unchanged(a, outer, "secret", "store")
}

func writeOwn(a *attack, st *coppice.Store, id string) {
	s, err := st.Create(id, nil)
	if err == nil {
		_, err = s.Append(a.Context(), entry.User("of "+id))
	}
	if err == nil {
		_, err = s.Commit(a.Context(), coppice.Turn{State: id})
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		a.broken("%s: %v", quoted(id), err)
	}
}

// keysOutside asks the driver for what no id becomes.
func keysOutside(a *attack, b *local.Backend) {
	for _, key := range []string{
		"../secret", "..", "/etc/passwd", "a/../../secret", "sessions/../../secret", `..\secret`, "a//b", "a/./b", "a/.lock", ".tmp/x", "a\x00", "", ".", "a/", "C:/x", strings.Repeat("a/", 500) + "a",
	} {
		_, _, get := b.Get(a.Context(), key, backend.Range{})
		_, put := b.Put(a.Context(), key, []byte("x"), backend.Cond{})
		_, app := b.Append(a.Context(), key, 0, []byte("x"))
		for what, err := range map[string]error{"get": get, "put": put, "append": app, "delete": b.Delete(a.Context(), key)} {
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				a.broken("%s of %s: %v", what, quoted(key), err)
			}
		}
		a.try(4)
	}
}

// unchanged wants of a folder that it holds these names, and of the file "secret" what stood in it.
func unchanged(a *attack, dir string, names ...string) {
	a.Helper()
	found, err := os.ReadDir(dir)
	a.must(err)
	if len(found) != len(names) {
		a.broken("outside of the store: %v", found)
	}
	if p, err := os.ReadFile(filepath.Join(dir, "secret")); err != nil || string(p) != "outside" {
		a.broken("the file outside holds %q: %v", p, err)
	}
}
