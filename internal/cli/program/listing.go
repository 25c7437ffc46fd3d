package program

// Listing tells of a listing of sessions: a bar for whoever waits at a terminal. end takes it away.
func (a *App) Listing() (tell func(looked, total int), end func()) {
	bar := a.Err.Progress("looking at sessions", -1, false, a.Now)
	return func(looked, total int) { bar.Reach(int64(looked), int64(total)) }, bar.Close
}
