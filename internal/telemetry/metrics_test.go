package telemetry_test

import (
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// exposed returns what the handler serves.
func exposed(t *testing.T, m *telemetry.Metrics) string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.Code != 200 {
		t.Fatalf("code %d, %v", answer.Code, err)
	}
	return string(text)
}

func TestMetricsAreServed(t *testing.T) {
	m := telemetry.NewMetrics()
	reason := telemetry.Label{Name: "reason", Values: []string{"policy", "busy"}}
	rejected := m.Counter("forgeyard_agent_offers_rejected_total", "Offers that were rejected.", reason)
	rejected.Inc("policy")
	rejected.Add(2, "busy")
	backlog := m.Gauge("forgeyard_agent_log_backlog_bytes", "Log bytes not yet taken by the daemon.")
	backlog.Set(10)
	backlog.Add(-3)
	m.GaugeFunc("forgeyard_agent_slots", "Slots.", func() float64 { return 4 })
	m.CounterFunc("forgeyard_agent_asks_total", "Times that somebody looked.", func() float64 { return 5 })
	m.Histogram("forgeyard_agent_offer_seconds", "Time to answer an offer.", []float64{0.1, 1}).Observe(0.5)
	text := exposed(t, m)
	for _, want := range []string{
		`forgeyard_agent_offers_rejected_total{reason="policy"} 1`,
		`forgeyard_agent_offers_rejected_total{reason="busy"} 2`,
		"forgeyard_agent_log_backlog_bytes 7",
		"forgeyard_agent_slots 4",
		"forgeyard_agent_asks_total 5",
		`forgeyard_agent_offer_seconds_bucket{le="1"} 1`,
		"go_goroutines ",
	} {
		if !strings.Contains(text, want+"\n") && !strings.Contains(text, want) {
			t.Errorf("%q is not served", want)
		}
	}
}

func TestALabelHasNoMoreSeriesThanItsList(t *testing.T) {
	m := telemetry.NewMetrics()
	c := m.Counter("forgeyard_daemon_closes_total", "Closed connections.", telemetry.Label{Name: "code", Values: []string{"normal"}})
	c.Inc("normal")
	for i := range 1000 {
		c.Inc(fmt.Sprintf("unheard-of-%d", i))
	}
	text := exposed(t, m)
	if n := strings.Count(text, "forgeyard_daemon_closes_total{"); n != 2 || !strings.Contains(text, `{code="other"} 1000`) {
		t.Errorf("%d series:\n%s", n, text)
	}
}

func TestBadMetricsAreRefusedWhereTheyAreMade(t *testing.T) {
	closed := []string{"a"}
	many := make([]string, telemetry.MaxLabelValues+1)
	bad := map[string]func(*telemetry.Metrics){
		"a foreign name":         func(m *telemetry.Metrics) { m.Gauge("agent_slots", "x") },
		"capitals":               func(m *telemetry.Metrics) { m.Gauge("forgeyard_Slots", "x") },
		"no help":                func(m *telemetry.Metrics) { m.Gauge("forgeyard_slots", "") },
		"a counter by no total":  func(m *telemetry.Metrics) { m.Counter("forgeyard_offers", "x") },
		"a function by no total": func(m *telemetry.Metrics) { m.CounterFunc("forgeyard_offers", "x", func() float64 { return 0 }) },
		"a histogram of no unit": func(m *telemetry.Metrics) {
			m.Histogram("forgeyard_offers", "x", []float64{1})
		},
		"a runner in a label": func(m *telemetry.Metrics) {
			m.Gauge("forgeyard_slots", "x", telemetry.Label{Name: "runner", Values: closed})
		},
		"an id in a label": func(m *telemetry.Metrics) {
			m.Gauge("forgeyard_slots", "x", telemetry.Label{Name: "boot_id", Values: closed})
		},
		"an open label": func(m *telemetry.Metrics) { m.Gauge("forgeyard_slots", "x", telemetry.Label{Name: "code"}) },
		"a label of many": func(m *telemetry.Metrics) {
			m.Gauge("forgeyard_slots", "x", telemetry.Label{Name: "code", Values: many})
		},
		"a name twice": func(m *telemetry.Metrics) {
			m.Gauge("forgeyard_slots", "x")
			m.Gauge("forgeyard_slots", "x")
		},
		"a value too few": func(m *telemetry.Metrics) {
			m.Counter("forgeyard_x_total", "x", telemetry.Label{Name: "code", Values: closed}).Inc()
		},
	}
	for name, make := range bad {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it was taken")
				}
			}()
			make(telemetry.NewMetrics())
		})
	}
}
