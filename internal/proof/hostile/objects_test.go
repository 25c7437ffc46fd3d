package hostile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
)

// lyingObjects puts objects that are whole in the place of others, and cuts the tail, where a segment's index
// stands: no reader takes one for the other.
func lyingObjects(a *attack) {
	b := memory.New()
	st := a.store(b)
	imported(a, st)
	filled(a, st, "other")
	fair := a.objects(b)
	keys := slices.Sorted(maps.Keys(fair))
	for _, key := range keys {
		if !strings.Contains(key, "/s") || strings.Contains(key, "/snapshots/") && !strings.HasPrefix(key, "sessions/s/") {
			continue
		}
		lies := map[string][]byte{"half of itself": fair[key][:len(fair[key])/2], "itself without its end": fair[key][:len(fair[key])-12], "itself twice": slices.Concat(fair[key], fair[key]), "nothing": {}}
		for _, other := range keys {
			if other != key && kindOf(other) == kindOf(key) {
				lies[other] = fair[other]
			}
		}
		for lie, p := range lies {
			a.put(b, key, p)
			found := readAll(a, b)
			if len(found) == 0 {
				a.broken("%s in the place of %s: nobody notices", lie, key)
			}
			for _, err := range found {
				if !errors.Is(err, coppice.ErrCorrupt) {
					a.broken("%s in the place of %s: %v", lie, key, err)
				}
			}
			a.put(b, key, fair[key])
			a.try(1)
		}
	}
	if found := readAll(a, b); len(found) > 0 {
		a.broken("the fair store: %v", found)
	}
}

// kindOf is what an object is, by its key.
func kindOf(key string) string {
	parts := strings.Split(key, "/")
	if parts[0] != "sessions" {
		return parts[0]
	}
	return parts[2]
}

// filled makes a session of several sealed segments and a snapshot.
func filled(a *attack, st *coppice.Store, id string) {
	s := a.session(st, id)
	for i := range 3 {
		for range 300 {
			_, err := s.Append(a.Context(), entry.User(fmt.Sprintf("of %s, part %d", id, i)))
			a.must(err)
		}
		_, err := s.Commit(a.Context(), coppice.Turn{State: i})
		a.must(err)
	}
	_, err := s.Snapshot(a.Context(), "t")
	a.must(err)
	a.must(s.Close())
}

// tenants: many clients of one bucket, each below its own prefix, with ids and prefixes chosen to meet.
func tenants(a *attack) {
	b := memory.New()
	prefixes := []string{"a", "ab", "A", "a_", "b/a", "b/a.c", "b/ab", "a-sessions", "t/checkpoint_latest"}
	ids := []string{"s", "S", "a", "ab", "sessions", "checkpoint_latest", "..s", "a..b", "b", strings.Repeat("A", 128)}
	foreign := []string{"../s", "../ab/s", "/a/s", "./b/a/s", `..\a\s`, "a/../b", "", "..", "%2e%2e/s", "s/../../ab/checkpoint_latest/s", "a\x00/s"}
	stores := map[string]*coppice.Store{}
	for _, prefix := range prefixes {
		before := a.objects(b)
		stores[prefix] = a.store(backend.WithPrefix(b, prefix))
		for _, id := range ids {
			s, err := stores[prefix].Create(id, nil)
			if err != nil {
				continue // no id at all
			}
			_, err = s.Append(a.Context(), entry.User("of "+prefix+" "+id))
			a.must(err)
			_, err = s.Commit(a.Context(), coppice.Turn{State: prefix + " " + id})
			a.must(err)
			a.must(s.Close())
			a.try(1)
		}
		for key, p := range a.objects(b) {
			if old, there := before[key]; there && string(old) != string(p) || !there && !strings.HasPrefix(key, prefix+"/") {
				a.broken("the tenant %q wrote %q", prefix, key)
			}
		}
	}
	for prefix, st := range stores {
		for sum, err := range st.List(a.Context(), coppice.ListOptions{}) {
			if err != nil {
				a.broken("%q: %v", prefix, err)
				continue
			}
			s, err := st.Open(a.Context(), sum.ID, nil)
			if err != nil {
				a.broken("%q %q: %v", prefix, sum.ID, err)
				continue
			}
			var own string
			if err := s.State(&own); err != nil || own != prefix+" "+sum.ID {
				a.broken("%q finds in %q the state of %q: %v", prefix, sum.ID, own, err)
			}
			a.must(s.Close())
		}
		reach(a, b, prefix, st, foreign)
	}
	deleteAll(a, b, stores)
}

// reach asks a tenant's store, and its backend, for what lies outside of its prefix.
func reach(a *attack, b backend.Backend, prefix string, st *coppice.Store, foreign []string) {
	before := a.objects(b)
	for _, id := range foreign {
		if _, err := st.Open(a.Context(), id, nil); err == nil {
			a.broken("%q opens %q", prefix, id)
		}
		if err := st.Delete(a.Context(), id); err == nil {
			a.broken("%q deletes %q", prefix, id)
		}
		own := backend.WithPrefix(b, prefix)
		if _, _, err := own.Get(a.Context(), id, backend.Range{}); err == nil {
			a.broken("%q reads %q", prefix, id)
		}
		if _, err := own.Put(a.Context(), id, []byte("x"), backend.Cond{}); err == nil {
			a.broken("%q writes %q", prefix, id)
		}
		for info, err := range own.List(a.Context(), backend.ListOptions{Prefix: id}) {
			if err == nil && id != "" {
				a.broken("%q lists %q by %q", prefix, info.Key, id)
			}
		}
		a.try(5)
	}
	if after := a.objects(b); !maps.EqualFunc(before, after, slices.Equal) {
		a.broken("%q changed what it may not", prefix)
	}
}

// deleteAll deletes one tenant's sessions after the other: what is the others' stays.
func deleteAll(a *attack, b backend.Backend, stores map[string]*coppice.Store) {
	for prefix, st := range stores {
		before := a.objects(b)
		for sum, err := range st.List(a.Context(), coppice.ListOptions{}) {
			a.must(err)
			if err := st.Delete(a.Context(), sum.ID); err != nil {
				a.broken("%q: delete %q: %v", prefix, sum.ID, err)
			}
		}
		if _, err := st.GC(a.Context(), "", false); err != nil {
			a.broken("%q: gc: %v", prefix, err)
		}
		after := a.objects(b)
		for key, p := range before {
			if !strings.HasPrefix(key, prefix+"/") && string(after[key]) != string(p) {
				a.broken("deleting what is %q's took %q", prefix, key)
			}
		}
	}
}
