package transcript

import "github.com/coppice-go/coppice/internal/rawjson"

// Profile is the rules by which the window builds its context.
func (w *PathWindow) Profile() Profile { return w.profile }

// MaxBytes is the window's bound, as RestorePathWindow takes it; -1 = none.
func (w *PathWindow) MaxBytes() int { return w.max }

// Settings gives the settings in force at the window's leaf. It reads from the end until each is known.
func (w *PathWindow) Settings() Settings {
	if w.rules.explicit { // an explicit model outranks what comes after it
		return w.rules.settings(w.Entries(), w.base)
	}
	return w.rules.settings(w.fresh, w.rules.settings(w.entries, w.base))
}

// Title gives the name that an entry puts on its session: pi's session_info, where an absent or empty
// name clears it, and omp's title_change. false: the entry says nothing of it.
func Title(e Entry) (name string, ok bool) {
	switch e.Type {
	case "session_info":
		return rawjson.Text(rawjson.Field(e.Raw, "name")), true
	case "title_change":
		return rawjson.Text(rawjson.Field(e.Raw, "title")), true
	}
	return "", false
}
