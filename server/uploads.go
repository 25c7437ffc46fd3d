package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/transcript"
)

// Bounds of what was uploaded and is waiting for its commit. Above them the oldest goes: its client uploads it again.
const (
	maxUploads  = 64 << 20 // bytes
	maxUploaded = maxUploads / 2
	uploadedFor = 10 * time.Minute
)

// uploads are images that clients have sent before the commits that refer to them, in memory.
type uploads struct {
	mu   sync.Mutex
	list []upload // oldest first
}

type upload struct {
	of     writerKey
	tenant string
	sum    string
	data   []byte
	at     time.Time
}

// add keeps an image until its commit, or until there is no room for it.
func (u *uploads) add(n upload) {
	u.mu.Lock()
	defer u.mu.Unlock()
	all, own := len(n.data), len(n.data)
	kept := u.list[:0]
	for i := range slices.Backward(u.list) { // the newest stay
		o := &u.list[i]
		all += len(o.data)
		if o.tenant == n.tenant {
			own += len(o.data)
		}
		same := o.of == n.of && o.sum == n.sum || n.at.Sub(o.at) > uploadedFor
		if same || all > maxUploads || o.tenant == n.tenant && own > maxUploaded {
			o.data = nil
		}
	}
	for _, o := range u.list {
		if o.data != nil {
			kept = append(kept, o)
		}
	}
	clear(u.list[len(kept):])
	u.list = kept
	u.list = append(u.list, n)
}

// get returns the bytes of an image; nil = it is not there.
func (u *uploads) get(of writerKey, sum string) []byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, o := range u.list {
		if o.of == of && o.sum == sum {
			return o.data
		}
	}
	return nil
}

// uploadPath names an image of a session.
type uploadPath struct {
	request
	ID     string `path:"id" maxLength:"128" doc:"the session's id"`
	SHA256 string `path:"sha256" doc:"of the bytes: 64 lower-case hex digits"`
}

func (s *Server) describeUploads() {
	handle[uploadPath, struct{}](s, operation{
		method: "PUT", path: "/v1/sessions/{id}/blobs/{sha256}", id: "upload", fleeting: true,
		raw: "application/octet-stream", statuses: []int{204},
		summary: "Send the bytes of an image before the commit whose entries refer to it",
		text: "The server keeps them in memory for 10 minutes, or until others need the room; another server of the " +
			"store does not have them. A commit with images ref refers to them as coppice-blob:sha256:HEX:BYTES in " +
			"place of base64.",
	}, s.upload)
}

func (s *Server) upload(ctx context.Context, q *uploadPath) (answer, error) {
	kind, _, _ := mime.ParseMediaType(q.r.Header.Get("Content-Type"))
	if kind != "" && kind != "application/octet-stream" && !strings.HasPrefix(kind, "image/") {
		return answer{}, newProblem(http.StatusUnsupportedMediaType, "usage", "send application/octet-stream",
			fmt.Errorf("a body of the type %.80q; nothing was stored", kind))
	}
	data, err := io.ReadAll(q.r.Body) // bounded by the operation's limit
	if err != nil {
		return answer{}, err
	}
	return read(ctx, &q.request, func(*coppice.Session) (answer, error) {
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != q.SHA256 || len(data) == 0 {
			return answer{}, badInput("sha256", errors.New("it is not the SHA-256 of the body"))
		}
		s.uploads.add(upload{writerKey{q.on.Store, q.id}, q.on.Tenant, q.SHA256, data, s.o.Now()})
		return answer{status: http.StatusNoContent}, nil
	})
}

// withImages puts the base64 text of images in the place of references to them: of what was uploaded, and of what the
// session has. Together they are at most as long as a body.
func (s *Server) withImages(
	ctx context.Context, h *coppice.Session, q *request, entries []transcript.Draft,
) (out []transcript.Draft, err error) {
	room, seen := s.o.MaxBody, seenOf(q.r)
	var failed error
	get := func(sum string) ([]byte, bool) {
		data := s.uploads.get(writerKey{q.on.Store, q.id}, sum)
		seen.brought += int64(len(data))
		if data == nil && failed == nil {
			var err error
			if data, err = h.Blob(ctx, sum); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = err
			}
		}
		if room -= int64(len(data)) * 4 / 3; room < 0 && failed == nil {
			failed = &http.MaxBytesError{Limit: s.o.MaxBody}
		}
		return data, data != nil && failed == nil
	}
	for _, e := range entries {
		var gone, lost []string
		e.Body, gone = blob.Internalise(e.Body, get)
		e.Raw, lost = blob.Internalise(e.Raw, get)
		if failed != nil {
			return nil, failed
		}
		for _, sum := range append(gone, lost...) {
			return nil, newProblem(http.StatusUnprocessableEntity, "no-blob",
				"nothing was stored: upload it to the server that gets the commit, and repeat that, or send base64",
				fmt.Errorf("the image %s is neither in the session nor in this server, or has another length", sum))
		}
		out = append(out, e)
	}
	return out, nil
}
