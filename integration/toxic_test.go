package integration

import (
	"bytes"
	"encoding/json"
	"net/url"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/s3"
	"github.com/coppice-go/coppice/integration/s3test"
	"github.com/coppice-go/coppice/internal/journal"
)

// toxic is one way to corrupt the traffic of a connection, for every request while it is on.
type toxic struct {
	kind, stream string
	attributes   map[string]any
	harmless     bool // the commit succeeds while it is on
}

var toxics = []toxic{
	{"latency", "downstream", map[string]any{"latency": 30, "jitter": 10}, true},
	{"bandwidth", "upstream", map[string]any{"rate": 200}, true},
	{"slow_close", "downstream", map[string]any{"delay": 50}, true},
	{"slicer", "downstream", map[string]any{"average_size": 16, "size_variation": 8, "delay": 100}, true},
	{"timeout", "downstream", map[string]any{"timeout": 50}, false},
	{"reset_peer", "downstream", map[string]any{"timeout": 0}, false},
	{"limit_data", "downstream", map[string]any{"bytes": 40}, false},
	{"reset_peer", "upstream", map[string]any{"timeout": 0}, false},
	{"limit_data", "upstream", map[string]any{"bytes": 700}, false},
}

// A turn is committed over a corrupted connection. Either it is acknowledged, or the error is true; and once the
// connection is intact again, the turn is stored exactly once.
func TestToxics(t *testing.T) {
	target := s3test.For(t)
	if target.Plain() == "" {
		t.Skip("faults are injected before a server on this machine only")
	}
	endpoint := must(url.Parse(target.Endpoint))(t)
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxics log to the global logger
	for _, x := range append(toxics, toxic{kind: "down"}) {
		t.Run(x.kind+" "+x.stream, func(t *testing.T) {
			server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
			proxy := toxiproxy.NewProxy(server, "s3", "127.0.0.1:0", endpoint.Host)
			if err := proxy.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(proxy.Stop)
			prefix := target.Prefix(t)
			options := func(o *s3.Options) *s3.Options { o.Attempts = 3; return o }
			w, l := &world{
				t: t, limits: journal.Limits{Attempts: 3},
				direct: backend.WithPrefix(target.Open(t, nil), prefix),
			}, newLedger()
			via := target.Via(endpoint.Scheme + "://" + proxy.Listen)
			w.faulty = backend.WithPrefix(via.Open(t, options(via.Options())), prefix)
			j := w.create(w.faulty)
			l.acked["first"] = w.turn(j, "first").Commit.Commit
			spoil(t, proxy, x)
			s := step(j, "turn")
			r, err := j.Commit(t.Context(), s)
			if x.harmless != (err == nil) {
				t.Errorf("commit: %v", err)
			}
			l.note("turn", r, err)
			w.check(l)
			heal(t, proxy, x)
			if err != nil {
				c := &chaos{world: w}
				if r, err = c.recover(t.Context(), j, s, err); err != nil {
					t.Fatalf("after the connection was whole again: %v", err)
				}
				delete(l.failed, "turn")
				delete(l.doubt, "turn")
				l.note("turn", r, nil)
			}
			l.acked["next"] = w.turn(j, "next").Commit.Commit
			w.check(l)
		})
	}
}

func spoil(t *testing.T, p *toxiproxy.Proxy, x toxic) {
	t.Helper()
	if x.kind == "down" {
		p.Stop()
		return
	}
	raw, err := json.Marshal(map[string]any{
		"name": "t", "type": x.kind, "stream": x.stream, "toxicity": 1.0, "attributes": x.attributes,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Toxics.AddToxicJson(bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
}

func heal(t *testing.T, p *toxiproxy.Proxy, x toxic) {
	t.Helper()
	var err error
	if x.kind == "down" {
		err = p.Start()
	} else {
		err = p.Toxics.RemoveToxic(t.Context(), "t")
	}
	if err != nil {
		t.Fatal(err)
	}
}
