package backend

// IO counts the use of a backend: calls, whether they succeeded or not, and bytes of objects.
type IO struct {
	Get    int `json:"get"`
	Put    int `json:"put"`
	Append int `json:"append"` // Cut and Resync too
	Stat   int `json:"stat"`
	List   int `json:"list"` // listings, not pages
	Delete int `json:"delete"`

	BytesRead    int64 `json:"bytesRead"`    // returned by Get
	BytesWritten int64 `json:"bytesWritten"` // passed to Put and Append
}

// Add returns the sum of two counts.
func (x IO) Add(y IO) IO {
	return IO{
		Get: x.Get + y.Get, Put: x.Put + y.Put, Append: x.Append + y.Append,
		Stat: x.Stat + y.Stat, List: x.List + y.List, Delete: x.Delete + y.Delete,
		BytesRead: x.BytesRead + y.BytesRead, BytesWritten: x.BytesWritten + y.BytesWritten,
	}
}

// Sub returns the difference of two counts.
func (x IO) Sub(y IO) IO {
	return IO{
		Get: x.Get - y.Get, Put: x.Put - y.Put, Append: x.Append - y.Append,
		Stat: x.Stat - y.Stat, List: x.List - y.List, Delete: x.Delete - y.Delete,
		BytesRead: x.BytesRead - y.BytesRead, BytesWritten: x.BytesWritten - y.BytesWritten,
	}
}
