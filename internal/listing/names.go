package listing

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/parallel"
)

// runSize bounds the checkpoints that are listed for one page by id: a request of S3.
const runSize = 1000

// listParts is in how many parts the checkpoints of a large store are listed at once.
const listParts = 16

// written returns the sessions, the one whose checkpoint or log was written last first. On a store that appends the
// segments of each are listed; elsewhere those of sessions without a checkpoint alone.
func (l *lister) written(ctx context.Context) ([]session, error) {
	all, err := l.all(ctx)
	if err != nil {
		return nil, err
	}
	err = l.followAll(ctx, all)
	all = slices.DeleteFunc(all, func(s session) bool { return s.lost && s.log == nil && s.refused == nil })
	for i := range all {
		all[i].at = latest(all[i].info).UnixMilli()
		if k, ok := l.catalogue.get(all[i].name()); ok && k.sum != nil && all[i].sum != nil {
			all[i].at = k.at
		}
	}
	slices.SortFunc(all, later)
	return all, err
}

// followAll finds out where the logs of sessions end, if that matters.
func (l *lister) followAll(ctx context.Context, list []session) error {
	var at []int
	for i, s := range list {
		if s.lost || l.appends && !s.bare {
			at = append(at, i)
		}
	}
	return parallel.Each(ctx, len(at), func(i int) error { return l.follow(ctx, &list[at[i]]) })
}

// follow finds out where the log of a session ends, unless there is none: as it did the last time, or as a listing of
// its segments shows.
func (l *lister) follow(ctx context.Context, s *session) error {
	k, same, err := l.recall(ctx, s)
	end := k.log
	if err == nil && !same {
		id, _ := layout.Unescape(s.name())
		end, err = logOf(ctx, l.b, id)
	}
	if backend.Refused(err) {
		s.refused = err
		return nil
	}
	if err != nil || s.lost && end.name == "" {
		return err
	}
	s.log = &end
	if end.written.After(s.info.ModTime) {
		s.info.ModTime = end.written
	}
	switch {
	case same:
		s.sum = k.sum
	case end.name == "" && l.catalogue != nil && l.appends: // once: it is a tombstone, most likely
		_, err = l.summary(ctx, s)
	default:
		l.remember(s, nil)
	}
	return err
}

// all returns the sessions in no particular order, by two listings at once. One that is lost may have no log.
func (l *lister) all(ctx context.Context) (all []session, err error) {
	folders, read, small := map[string]bool{}, 0, make(chan struct{})
	err = parallel.Each(ctx, 2, func(i int) error {
		if i == 0 {
			defer close(small)
			list, err := l.checkpoints(ctx)
			all = list
			return err
		}
		o := backend.ListOptions{Prefix: layout.Sessions, Delimiter: "/", Loose: true}
		for info, err := range l.b.List(ctx, o) {
			if err != nil {
				return err
			}
			if name, isFolder := folderOf(info); isFolder {
				folders[name] = true
			}
			if read++; l.probing && read == l.large() {
				if <-small; l.isLarge.Load() {
					return nil
				}
			}
		}
		return nil
	})
	for i := range all {
		all[i].bare = !folders[all[i].name()]
		delete(folders, all[i].name())
	}
	for name := range folders {
		all = appendLost(all, name)
	}
	return all, err
}

// errLarge: the store has a page of sessions, and probably more.
var errLarge = errors.New("the store is large")

// checkpoints lists the checkpoints: of a store that replaces, whose catalogue is known, in parts at once.
func (l *lister) checkpoints(ctx context.Context) (all []session, err error) {
	cuts := l.cuts()
	parts := make([][]session, len(cuts)-1)
	err = parallel.Each(ctx, len(parts), func(i int) error {
		o := backend.ListOptions{Prefix: layout.Checkpoints, After: cuts[i]}
		for info, err := range l.b.List(ctx, o) {
			if err != nil || cuts[i+1] != "" && info.Key > cuts[i+1] {
				return err
			}
			if s := (session{info: info, stored: stampOf(info)}); s.ours() {
				parts[i] = append(parts[i], s)
			}
			if l.probing && len(parts[i]) == l.large() {
				l.isLarge.Store(true)
				return errLarge
			}
		}
		return nil
	})
	return slices.Concat(parts...), err
}

// large returns how many sessions make a store large.
func (l *lister) large() int {
	n, _ := l.catalogue.most()
	return n
}

// cuts returns keys between which about as many checkpoints lie, if these are many; "" at the ends.
func (l *lister) cuts() []string {
	cuts := []string{""}
	if c := l.catalogue; c != nil && !l.appends {
		c.mu.Lock()
		names := slices.Sorted(maps.Keys(c.of))
		loaded := c.loaded
		c.mu.Unlock()
		for part := len(names) / listParts; loaded && part >= l.large() && len(cuts) < listParts; {
			cuts = append(cuts, layout.Checkpoints+names[len(cuts)*part])
		}
	}
	return append(cuts, "")
}

// ours reports whether a key is that of a checkpoint.
func (s *session) ours() bool {
	_, ours := layout.Unescape(s.name())
	return ours
}

// folderOf returns the name of a session's folder.
func folderOf(info backend.Info) (name string, isFolder bool) {
	return strings.CutSuffix(info.Key[len(layout.Sessions):], "/")
}

// appendLost appends the session that has a folder with this name and no checkpoint.
func appendLost(list []session, name string) []session {
	s := session{info: backend.Info{Key: layout.Checkpoints + name}, lost: true}
	if !s.ours() {
		return list
	}
	return append(list, s)
}

// byName orders sessions by their stored names.
func byName(a, b session) int { return strings.Compare(a.info.Key, b.info.Key) }

// names yields the sessions in the order of their stored names, from after one on. With a limit it lists run by run:
// so many checkpoints, and the folders between the first and the last of them.
func (l *lister) names(ctx context.Context, after string) iter.Seq2[session, error] {
	if l.o.Limit > 0 {
		return l.runs(ctx, after)
	}
	return func(yield func(session, error) bool) {
		all, err := l.all(ctx)
		slices.SortFunc(all, byName)
		for _, s := range all {
			if err == nil && s.name() > after && !yield(s, nil) {
				return
			}
		}
		if err != nil {
			yield(session{}, err)
		}
	}
}

func (l *lister) runs(ctx context.Context, from string) iter.Seq2[session, error] {
	return func(yield func(session, error) bool) {
		var run []session
		end := func(to string) bool {
			whole, err := l.withLost(ctx, run, from, to)
			if err != nil {
				yield(session{}, err)
				return false
			}
			for _, s := range whole {
				if !yield(s, nil) {
					return false
				}
			}
			from, run = to, run[:0]
			return true
		}
		o := backend.ListOptions{Prefix: layout.Checkpoints}
		if from != "" {
			o.After = layout.Checkpoints + from
		}
		for info, err := range l.b.List(ctx, o) {
			if err != nil {
				yield(session{}, err)
				return
			}
			s := session{info: info, stored: stampOf(info), bare: true}
			if !s.ours() {
				continue
			}
			if run = append(run, s); len(run) == cmp.Or(l.run, runSize) && !end(s.name()) {
				return
			}
		}
		end("")
	}
}

// withLost adds to a run of checkpoints the sessions in (from, to] that have a folder and no checkpoint, each in its
// place, and notes which of the run have a folder. to "" = no bound.
func (l *lister) withLost(ctx context.Context, run []session, from, to string) ([]session, error) {
	at := make(map[string]int, len(run))
	for i := range run {
		at[run[i].name()] = i
	}
	whole := slices.Clone(run)
	add := func(name string) {
		if i, there := at[name]; there {
			whole[i].bare = false
		} else if name > from && (to == "" || name <= to) {
			if grown := appendLost(whole, name); len(grown) > len(whole) {
				at[name], whole = len(whole), grown
			}
		}
	}
	o := backend.ListOptions{Prefix: layout.Sessions, Delimiter: "/", Loose: true}
	if from != "" {
		o.After = layout.Sessions + from
	}
	for info, err := range l.b.List(ctx, o) {
		if err != nil {
			return nil, err
		}
		name, isFolder := folderOf(info)
		if isFolder {
			add(name)
		}
		if to != "" && name >= to {
			break
		}
	}
	// A folder's key ends in "/", which sorts after "-" and ".": the folder "a/" comes after "a-b/", but the name "a"
	// before "a-b". So the folders of the last name, and of names that it begins with, may not have been reached.
	for i := range len(to) + 1 {
		name := to[:i]
		n, there := at[name]
		_, ours := layout.Unescape(name)
		if !ours || name <= from || i < len(to) && to[i] > '/' || there && !whole[n].bare {
			continue
		}
		o := backend.ListOptions{Prefix: layout.Sessions + name + "/", Limit: 1}
		for _, err := range l.b.List(ctx, o) {
			if err != nil {
				return nil, err
			}
			add(name)
		}
	}
	slices.SortFunc(whole, byName)
	return whole, nil
}

// IDs returns the ids of all sessions, in the order of their stored names, deleted ones among them: two listings, and
// no object is read.
func IDs(ctx context.Context, b backend.Backend) (ids []string, err error) {
	for s, err := range (&lister{b: b}).names(ctx, "") {
		if err != nil {
			return nil, err
		}
		id, _ := layout.Unescape(s.name())
		if !s.lost {
			ids = append(ids, id)
			continue
		}
		for _, err := range b.List(ctx, backend.ListOptions{Prefix: layout.SessionPrefix(id), Limit: 1}) {
			if err != nil {
				return nil, err
			}
			ids = append(ids, id) // its folder is not empty
		}
	}
	return ids, nil
}
