package telemetry

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// MaxLabelValues bounds the values of one label, and so the series that it makes.
const MaxLabelValues = 64

// Other stands in a label for a value that is not on its list.
const Other = "other"

var (
	metricName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^forgeyard(_[a-z0-9]+)+$`) })
	labelName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`) })
)

// identities are words that name one thing among many: no label may be called so.
var identities = []string{"id", "run", "job", "attempt", "lease", "runner", "agent", "session", "connection", "address", "host", "user", "digest", "path"}

// Metrics is the registry of one process. Metrics are made once, while the program is put together; a bad name or label
// is a mistake in our code and panics. All methods may be called by many goroutines.
type Metrics struct {
	registry *prometheus.Registry
}

// NewMetrics returns a registry with the figures of the Go runtime and of the process.
func NewMetrics() *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &Metrics{registry: registry}
}

// Handler serves the metrics in the format of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// A Label tells series of one metric apart. Values lists all that it may say: others are counted as Other.
type Label struct {
	Name   string
	Values []string
}

// A Counter counts events.
type Counter struct {
	vec    *prometheus.CounterVec
	labels []Label
}

// Counter makes a counter. Its name begins with forgeyard_ and ends in _total.
func (m *Metrics) Counter(name, help string, labels ...Label) *Counter {
	check(name, help, labels)
	if !strings.HasSuffix(name, "_total") {
		panic(fmt.Sprintf("telemetry: counter %s: the name must end in _total", name))
	}
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, names(labels))
	m.registry.MustRegister(vec)
	return &Counter{vec: vec, labels: labels}
}

// Add counts n events under the values of the labels, in their order.
func (c *Counter) Add(n uint64, values ...string) {
	c.vec.WithLabelValues(bounded(c.labels, values)...).Add(float64(n))
}

// Inc counts one event.
func (c *Counter) Inc(values ...string) { c.Add(1, values...) }

// CounterFunc makes a counter that asks read whenever somebody looks. read must be quick, never give less than before, and may
// be called by several goroutines at once.
func (m *Metrics) CounterFunc(name, help string, read func() float64) {
	check(name, help, nil)
	if !strings.HasSuffix(name, "_total") {
		panic(fmt.Sprintf("telemetry: counter %s: the name must end in _total", name))
	}
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, read))
}

// A Gauge holds an amount that rises and falls.
type Gauge struct {
	vec    *prometheus.GaugeVec
	labels []Label
}

// Gauge makes a gauge. Its name says the unit last, as in _bytes, where it has one.
func (m *Metrics) Gauge(name, help string, labels ...Label) *Gauge {
	check(name, help, labels)
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, names(labels))
	m.registry.MustRegister(vec)
	return &Gauge{vec: vec, labels: labels}
}

// Set stores the amount.
func (g *Gauge) Set(v float64, values ...string) {
	g.vec.WithLabelValues(bounded(g.labels, values)...).Set(v)
}

// Add changes the amount by d.
func (g *Gauge) Add(d float64, values ...string) {
	g.vec.WithLabelValues(bounded(g.labels, values)...).Add(d)
}

// GaugeFunc makes a gauge that asks read whenever somebody looks. read must be quick and may be called by several
// goroutines at once.
func (m *Metrics) GaugeFunc(name, help string, read func() float64) {
	check(name, help, nil)
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// A Histogram counts durations or sizes in buckets.
type Histogram struct {
	vec    *prometheus.HistogramVec
	labels []Label
}

// Histogram makes a histogram with the given upper bounds. Its name ends in _seconds or _bytes.
func (m *Metrics) Histogram(name, help string, buckets []float64, labels ...Label) *Histogram {
	check(name, help, labels)
	if !strings.HasSuffix(name, "_seconds") && !strings.HasSuffix(name, "_bytes") {
		panic(fmt.Sprintf("telemetry: histogram %s: the name must end in _seconds or _bytes", name))
	}
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, names(labels))
	m.registry.MustRegister(vec)
	return &Histogram{vec: vec, labels: labels}
}

// Observe counts one value.
func (h *Histogram) Observe(v float64, values ...string) {
	h.vec.WithLabelValues(bounded(h.labels, values)...).Observe(v)
}

// check panics where a name, a help text or a label breaks our rules.
func check(name, help string, labels []Label) {
	if !metricName().MatchString(name) {
		panic(fmt.Sprintf("telemetry: metric %q: a name is forgeyard_ and lower-case words", name))
	}
	if help == "" {
		panic(fmt.Sprintf("telemetry: metric %s has no help text", name))
	}
	for _, l := range labels {
		if !labelName().MatchString(l.Name) {
			panic(fmt.Sprintf("telemetry: metric %s: label %q is not lower-case words", name, l.Name))
		}
		if slices.Contains(identities, l.Name) || strings.HasSuffix(l.Name, "_id") {
			panic(fmt.Sprintf("telemetry: metric %s: label %s names one of many; put it into a log", name, l.Name))
		}
		if len(l.Values) == 0 || len(l.Values) > MaxLabelValues {
			panic(fmt.Sprintf("telemetry: metric %s: label %s has %d values, it needs 1 to %d", name, l.Name, len(l.Values), MaxLabelValues))
		}
	}
}

func names(labels []Label) []string {
	all := make([]string, len(labels))
	for i, l := range labels {
		all[i] = l.Name
	}
	return all
}

// bounded returns the values with those not on their label's list as Other.
func bounded(labels []Label, values []string) []string {
	if len(values) != len(labels) {
		panic(fmt.Sprintf("telemetry: %d values for %d labels", len(values), len(labels)))
	}
	all := make([]string, len(values))
	for i, v := range values {
		if all[i] = v; !slices.Contains(labels[i].Values, v) {
			all[i] = Other
		}
	}
	return all
}
