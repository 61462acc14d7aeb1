//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// figure is one thing to measure, with the limit that it is held against: what the machine does for a program without any
// of our logic.
type figure struct {
	name    string // group.what; the group is the argument of the command
	unit    string
	limitIs string
	// begin sets up whatever both sides need and returns their measurements, each of which is called once a run, in turn.
	begin func(ctx context.Context, o options) (pair, error)
}

// pair measures the figure and its limit.
type pair struct {
	ours  func(ctx context.Context) (float64, error)
	limit func(ctx context.Context) (float64, error)
	end   func()
}

// result is what was measured: the medians, and the median of the ratios of each run. The speed of a shared machine moves
// from minute to minute, so only what was measured next to each other is compared.
type result struct {
	Figure  string  `json:"figure"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Limit   float64 `json:"limit"`
	LimitIs string  `json:"limit_is"`
	Ratio   float64 `json:"ratio"`
	Runs    int     `json:"runs"`
}

// measure takes the figure runs times, each beside its limit. Which of the two goes first changes with each run, so that
// neither always meets the machine as the other has left it. One run before, which does not count, warms both up.
func measure(ctx context.Context, f figure, o options) (result, error) {
	p, err := f.begin(ctx, o)
	if err != nil {
		return result{}, fmt.Errorf("%s: set up: %w", f.name, err)
	}
	defer p.end()
	var values, limits, ratios []float64
	for i := range o.runs + 1 {
		value, limit, err := p.once(ctx, i%2 == 1)
		if err != nil {
			return result{}, fmt.Errorf("%s: %w", f.name, err)
		}
		if i == 0 {
			continue
		}
		values, limits, ratios = append(values, value), append(limits, limit), append(ratios, value/limit)
	}
	return result{
		Figure: f.name, Unit: f.unit, LimitIs: f.limitIs, Runs: o.runs,
		Value: median(values), Limit: median(limits), Ratio: median(ratios),
	}, nil
}

// once measures both.
func (p pair) once(ctx context.Context, limitFirst bool) (value, limit float64, err error) {
	if limitFirst {
		if limit, err = p.limit(ctx); err != nil {
			return 0, 0, fmt.Errorf("limit: %w", err)
		}
	}
	if value, err = p.ours(ctx); err != nil {
		return 0, 0, err
	}
	if !limitFirst {
		if limit, err = p.limit(ctx); err != nil {
			return 0, 0, fmt.Errorf("limit: %w", err)
		}
	}
	if limit == 0 {
		return 0, 0, fmt.Errorf("the limit was measured as zero")
	}
	return value, limit, nil
}

// median returns the middle of the values, or the mean of the two in the middle.
func median(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// selectFigures returns the figures of a group, or one by its full name, or all.
func selectFigures(all []figure, name string) []figure {
	if name == "all" {
		return all
	}
	var list []figure
	for _, f := range all {
		if group, _, _ := strings.Cut(f.name, "."); group == name || f.name == name {
			list = append(list, f)
		}
	}
	return list
}

// groups lists the names that selectFigures takes.
func groups(all []figure) []string {
	var list []string
	for _, f := range all {
		group, _, _ := strings.Cut(f.name, ".")
		list = append(list, group)
	}
	slices.SortFunc(list, cmp.Compare)
	return slices.Compact(list)
}

// printJSON writes one object a line.
func printJSON(w io.Writer, results []result) error {
	for _, r := range results {
		if err := json.NewEncoder(w).Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// printTable writes them for people.
func printTable(w io.Writer, results []result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "figure\tvalue\tunit\tlimit\tratio\truns\tlimit is")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.2f\t%d\t%s\n", r.Figure, short(r.Value), r.Unit, short(r.Limit), r.Ratio, r.Runs, r.LimitIs)
	}
	return t.Flush()
}

// short writes a number with three significant digits or more.
func short(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
