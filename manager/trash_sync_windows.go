package manager

// syncDir does nothing: Windows keeps names durable by itself, and cannot sync a folder.
func (*Trash) syncDir(string) error { return nil }
