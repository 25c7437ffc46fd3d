package manager

// syncDir does nothing: on Windows a folder cannot be synced, and renames are durable.
func (*Trash) syncDir(string) error { return nil }
