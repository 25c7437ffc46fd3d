package manager

import "os"

// SetSync sets the function that syncs the files and folders of a trash.
func (t *Trash) SetSync(sync func(*os.File) error) { t.sync = sync }
