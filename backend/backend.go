// Package backend is the storage contract of coppice: a flat, strongly consistent namespace of
// small objects, the errors that report what happened to the data, and nothing else.
//
// Every line of the contract below has a test in backendtest, which each driver and each decorator
// passes:
//
//  1. Durable on return. A nil error from Put, Append, Resync, Cut or Delete means that the effect
//     survives power loss.
//  2. Atomic. A reader sees the old object or the new one, never a part of it. Append exposes whole
//     appends; a crash may leave a torn tail, which the caller's checksums catch.
//  3. Strong. Get, Stat and List reflect every write that returned before they started.
//  4. Conditions. IfAbsent: of any number of racing callers exactly one wins. IfMatch(v) succeeds
//     only if the current version equals v; a missing object fails it, and so does the empty
//     version. A failed condition is ErrPrecondition with the outcome NotApplied.
//  5. Versions are opaque, are compared for equality only, and may repeat for equal bytes. Who
//     needs uniqueness puts something unique into the object (invariant I5). Put, Stat and a Get of
//     the whole return an object's version; a ranged Get, a List and the methods of Appender return the
//     same one or none, and of an object that was appended to even Stat and Get may return none.
//  6. Three outcomes. nil = applied. Else OutcomeOf(err): NotApplied is certain, Applied is certain
//     too, and Unknown, the zero value, means that the caller must look before it tries again.
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

// MaxObjectSize is the largest object, in bytes, that a driver has to take: 64 MiB. One Put is one
// request, and memory is bounded by this number times the number of calls under way.
const MaxObjectSize = 64 << 20

// Backend is what a driver implements. The package comment is its contract.
type Backend interface {
	// Get reads an object, or the part of it that r names. ErrNotExist, ErrRange.
	Get(ctx context.Context, key string, r Range) ([]byte, Info, error)
	// Put replaces or creates an object if c holds. ErrPrecondition, ErrTooLarge.
	Put(ctx context.Context, key string, p []byte, c Cond) (Info, error)
	// Stat returns what Get would, without the bytes. ErrNotExist.
	Stat(ctx context.Context, key string) (Info, error)
	// List yields the objects below o.Prefix in bytewise order of their keys.
	List(ctx context.Context, o ListOptions) iter.Seq2[Info, error]
	// Delete removes an object; a missing one is no error. It takes no condition: not every store
	// honours one.
	Delete(ctx context.Context, key string) error
	// Close releases what the driver holds; idempotent.
	Close() error
}

// freeing is the key of Freeing.
type freeing struct{}

// Freeing returns a context for writes that lead to the removal of objects. A driver may let them use space that it
// keeps from all others, so that a full store can be cleared.
func Freeing(ctx context.Context) context.Context { return context.WithValue(ctx, freeing{}, true) }

// IsFreeing reports whether a context is of Freeing.
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
	// Cut removes torn from the end of an object iff the object is off bytes followed by exactly torn,
	// and returns once that is durable. Any other length, any other bytes after off, a negative off and
	// a missing object are ErrPrecondition. The bytes are compared, and not only their number, because
	// another writer may have removed the same tail and appended as many bytes of its own. An empty torn
	// removes nothing.
	Cut(ctx context.Context, key string, off int64, torn []byte) error
	// Resync writes the bytes from off to size again in place, iff the object's size equals size, and
	// syncs them: pages that another process's failed sync left clean reach the disk by it. Another
	// size, or no object, is ErrPrecondition; an off outside 0 to size is ErrRange.
	Resync(ctx context.Context, key string, off, size int64) (Info, error)
}

// Version names one state of an object. It is opaque and compared for equality only; "" = not reported.
type Version string

// Info is what is known of an object.
type Info struct {
	Key     string
	Size    int64 // bytes of the whole object, also after a ranged Get
	Version Version
	ModTime time.Time
	Prefix  bool // a common prefix, rolled up at ListOptions.Delimiter; of the other fields only Key is set
}

// ListOptions narrows a listing. The zero value lists everything.
type ListOptions struct {
	Prefix    string // a string prefix of keys, not a folder: "a/b" matches "a/bc"
	After     string // only keys, or common prefixes, strictly greater; "" = from the start
	Delimiter string // "" or "/": roll up what follows the first delimiter after Prefix
	Limit     int    // at most so many results; 0 = all
	Loose     bool   // a common prefix may be one that no key starts with any more, where that is cheaper
}
