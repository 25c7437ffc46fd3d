// Package backend is the storage contract of coppice: a flat, strongly consistent namespace of small objects, and
// errors that report what happened to the data.
//
// Every line of the contract below has a test in backendtest, which each driver and each decorator passes:
//
//  1. Durable on return. A nil error from Put, Append, Resync, Cut or Delete means that the effect
//     survives power loss.
//  2. Atomic. A reader sees the old object or the new one, never a part of it. Append exposes whole
//     appends; a crash may leave a torn tail, which the caller detects by checksums.
//  3. Strong. Get, Stat and List reflect every write that returned before they started.
//  4. Conditions. IfAbsent: of any number of racing callers exactly one wins. IfMatch(v) succeeds
//     only if the current version equals v; a missing object fails it, and so does the empty
//     version. A failed condition is ErrPrecondition with the outcome NotApplied.
//  5. Versions are opaque, are compared for equality only, and may repeat for equal bytes. A caller
//     that needs unique versions stores something unique in the object (invariant I5). Put, Stat and
//     a Get of the whole object return its version; a ranged Get, a List and the methods of Appender
//     return the same one or none. Of an object that was appended to, Stat and Get may return none too.
//  6. Three outcomes. nil = applied. Else OutcomeOf(err): NotApplied is certain, Applied is certain
//     too, and Unknown, the zero value, means that the caller must read before it tries again.
//  7. Context. A context that is done at entry means no effect and NotApplied; one cancelled midway
//     means Unknown for writes, unless the driver is certain. The error wraps the context's.
//  8. Ranges are exact. Bytes(off, n) that is not fully inside the object is ErrRange; Tail(n)
//     returns min(n, size) bytes.
//  9. List yields keys in bytewise order, strictly after After. An error is yielded last, once.
//  10. Keys follow ValidKey; objects are at most MaxObjectSize bytes. Byte slices that are passed in
//     are neither kept nor modified; those that are returned belong to the caller.
//  11. Delete of a missing key is nil. All methods are safe for concurrent use. After Close each
//     returns ErrClosed. Every error is an *Error, or wraps one, with operation and key as called.
package backend

import (
	"context"
	"iter"
	"time"
)

// MaxObjectSize is the largest object, in bytes, that a driver has to accept: 64 MiB. One Put is one request, and
// memory is bounded by this number times the number of calls under way.
const MaxObjectSize = 64 << 20

// Backend is implemented by a driver. The package comment is its contract.
type Backend interface {
	// Get reads an object, or the part of it that r names. ErrNotExist, ErrRange.
	Get(ctx context.Context, key string, r Range) ([]byte, Info, error)
	// Put replaces or creates an object if c holds. ErrPrecondition, ErrTooLarge.
	Put(ctx context.Context, key string, p []byte, c Cond) (Info, error)
	// Stat returns the Info that Get would return, without the bytes. ErrNotExist.
	Stat(ctx context.Context, key string) (Info, error)
	// List yields the objects below o.Prefix in bytewise order of their keys.
	List(ctx context.Context, o ListOptions) iter.Seq2[Info, error]
	// Delete removes an object; a missing one is no error. It takes no condition: not every store supports one.
	Delete(ctx context.Context, key string) error
	// Close releases what the driver holds; idempotent.
	Close() error
}

// freeing is the key of Freeing.
type freeing struct{}

// Freeing returns a context for writes that lead to the removal of objects. A driver may let them use space that is
// reserved for them, so that a full store can be cleared.
func Freeing(ctx context.Context) context.Context { return context.WithValue(ctx, freeing{}, true) }

// IsFreeing reports whether a context was made by Freeing.
func IsFreeing(ctx context.Context) bool { return ctx.Value(freeing{}) != nil }

// Appender is a backend that can extend an object durably. Its methods run under a lock that other
// processes honour, so that each compares and acts as one step.
type Appender interface {
	Backend
	// Append writes p at the end of an existing object iff its size equals off, and returns once it is
	// durable. It never creates: a missing object is ErrPrecondition, and so is any off that is not
	// the size. An object that would pass MaxObjectSize is ErrTooLarge. After a short write that it
	// cut back and synced, the outcome is NotApplied; after any other failure, a failed sync included,
	// it is Unknown.
	Append(ctx context.Context, key string, off int64, p []byte) (Info, error)
	// Cut removes torn from the end of an object iff the object is off bytes followed by exactly torn, and returns once
	// that is durable. Any other length, any other bytes after off, a negative off and a missing object are
	// ErrPrecondition. The bytes are compared, and not only their number, because another writer may have removed the
	// same tail and appended as many bytes of its own. An empty torn removes nothing.
	Cut(ctx context.Context, key string, off int64, torn []byte) error
	// Resync rewrites the bytes from off to size in place, iff the object's size equals size, and syncs them: pages
	// that another process's failed sync left clean are thereby written to disk. Another size, or no object, is
	// ErrPrecondition; an off outside 0 to size is ErrRange.
	Resync(ctx context.Context, key string, off, size int64) (Info, error)
}

// Version names one state of an object. It is opaque and compared for equality only; "" = not reported.
type Version string

// Info describes an object.
type Info struct {
	Key     string
	Size    int64 // bytes of the whole object, also after a ranged Get
	Version Version
	ModTime time.Time
	Prefix  bool // a common prefix, rolled up at ListOptions.Delimiter; only Key is set
}

// ListOptions narrows a listing. The zero value lists everything.
type ListOptions struct {
	Prefix    string // a string prefix of keys, not a folder: "a/b" matches "a/bc"
	After     string // only keys, or common prefixes, greater than this; "" = from the start
	Delimiter string // "" or "/": roll up what follows the first delimiter after Prefix
	Limit     int    // maximum number of results; 0 = all
	Loose     bool   // a common prefix may be one without keys, if that is cheaper
}
