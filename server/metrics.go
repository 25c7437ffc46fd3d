package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	counts "github.com/VictoriaMetrics/metrics"
)

// metricsKind is the media type of the Prometheus text format.
const metricsKind = "text/plain; version=0.0.4; charset=utf-8"

// durations are the upper bounds of the buckets of durations, in seconds.
var durations = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60}

// metrics counts requests by operation and status: at most the product of both, whatever clients ask for.
type metrics struct{ set *counts.Set }

func newMetrics(s *Server) *metrics {
	m := &metrics{counts.NewSet()}
	m.set.NewGauge("coppice_sessions_open_for_writing", func() float64 {
		s.writers.mu.Lock()
		defer s.writers.mu.Unlock()
		return float64(len(s.writers.open))
	})
	m.set.NewGauge("coppice_event_streams", s.subscribers.taken)
	m.set.NewGauge("coppice_imports_under_way", s.imports.taken)
	m.set.NewGauge("coppice_import_bytes_under_way", s.files.taken)
	m.set.NewGauge("coppice_body_bytes_under_way", s.bodies.taken)
	return m
}

// count adds a request that was answered.
func (m *metrics) count(o *observed, took time.Duration) {
	m.set.GetOrCreateCounter(fmt.Sprintf("coppice_requests_total{operation=%q,status=\"%d\"}", o.operation, o.status)).
		Inc()
	if o.operation != "events" { // a stream lasts as long as its client wants
		name := fmt.Sprintf("coppice_request_duration_seconds{operation=%q}", o.operation)
		m.set.GetOrCreatePrometheusHistogramExt(name, durations).Update(took.Seconds())
	}
}

// metricsQuery has no parameters.
type metricsQuery struct{ request }

func (s *Server) describeMetrics() {
	handle[metricsQuery, struct{}](s, operation{
		method: "GET", path: "/metrics", id: "metrics", ofServer: true, storeless: true,
		types:   []string{"text/plain"},
		summary: "Counts and durations of requests, and figures of the process, for Prometheus",
	}, func(context.Context, *metricsQuery) (answer, error) {
		return answer{stream: func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", metricsKind)
			s.metrics.set.WritePrometheus(w)
			counts.WriteProcessMetrics(w)
			return nil
		}}, nil
	})
}
