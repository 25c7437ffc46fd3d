package transcript

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
