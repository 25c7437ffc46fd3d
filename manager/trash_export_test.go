package manager

import "os"

// SetSync sets what syncs the files and folders of a trash.
func (t *Trash) SetSync(sync func(*os.File) error) { t.sync = sync }
