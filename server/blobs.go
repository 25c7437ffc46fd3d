package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	coppice "github.com/coppice-go/coppice"
)

// blobPath names an image of a session.
type blobPath struct {
	request
	ID     string `path:"id" maxLength:"128" doc:"the session's id"`
	SHA256 string `path:"sha256" doc:"of the image's bytes: 64 hex digits, as an entry refers to it with images=ref"`
	Range  string `header:"Range" doc:"bytes"`
}

func (s *Server) describeBlobs() {
	handle[blobPath, struct{}](s, operation{
		method: "GET", path: "/v1/sessions/{id}/blobs/{sha256}", id: "blob",
		statuses: []int{206, 304}, errors: []int{416},
		types:   append(slices.Clone(pictures), "application/octet-stream"),
		summary: "The bytes of an image, or a range of them",
		text: "An image of an entry that has more than 24 KiB is stored apart, once. " +
			"What is no picture is a download.",
	}, s.blob)
}

// pictures are the types as which images are served. All else is a file to keep: SVG, for one, may hold scripts.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

func (s *Server) blob(ctx context.Context, q *blobPath) (answer, error) {
	return read(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		data, err := h.Blob(ctx, q.SHA256)
		if err != nil {
			return answer{}, err
		}
		return answer{etag: q.SHA256, lasting: true, stream: func(w http.ResponseWriter, r *http.Request) error {
			head := w.Header()
			head.Set("Content-Security-Policy", "default-src 'none'; sandbox")
			kind := http.DetectContentType(data)
			if !slices.Contains(pictures, kind) {
				kind = "application/octet-stream"
				head.Set("Content-Disposition", "attachment")
			}
			head.Set("Content-Type", kind)
			head.Add("Vary", "Range")
			ranged := &rangeWriter{ResponseWriter: w}
			http.ServeContent(ranged, r, "", time.Time{}, bytes.NewReader(data))
			if ranged.refused {
				head.Del("Content-Disposition")
				return newProblem(http.StatusRequestedRangeNotSatisfiable, "usage", "",
					fmt.Errorf("the image has %d bytes: %w", len(data), errRange))
			}
			return nil
		}}, nil
	})
}

// errRange is the error of a range that an image does not have.
var errRange = errors.New("it does not have this range")

// rangeWriter holds back the text with which http.ServeContent refuses a range: the answer is a problem.
type rangeWriter struct {
	http.ResponseWriter
	refused bool
}

func (w *rangeWriter) WriteHeader(status int) {
	if w.refused = status == http.StatusRequestedRangeNotSatisfiable; !w.refused {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *rangeWriter) Write(p []byte) (int, error) {
	if w.refused {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}
