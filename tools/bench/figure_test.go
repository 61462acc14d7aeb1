//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
)

// scripted is a figure whose values are told.
func scripted(values, limits []float64, calls *[]string) figure {
	return figure{
		name: "group.what", unit: "MB/s", limitIs: "a script",
		begin: func(context.Context, options) (pair, error) {
			next := func(what string, list []float64) func(context.Context) (float64, error) {
				i := 0
				return func(context.Context) (float64, error) {
					*calls = append(*calls, what)
					if i == len(list) {
						return 0, errors.New("no more")
					}
					i++
					return list[i-1], nil
				}
			}
			return pair{ours: next("ours", values), limit: next("limit", limits), end: func() { *calls = append(*calls, "end") }}, nil
		},
	}
}

func TestAFigureIsTheMedianOfRatiosOfRunsMeasuredSideBySide(t *testing.T) {
	var calls []string
	// The first run warms up. In the others the machine gets slower for both; each ratio is 0.5 but for one outlier.
	f := scripted([]float64{999, 50, 40, 30}, []float64{1, 100, 80, 30}, &calls)
	r, err := measure(t.Context(), f, options{runs: 3})
	if err != nil {
		t.Fatal(err)
	}
	if want := (result{Figure: "group.what", Value: 40, Unit: "MB/s", Limit: 80, LimitIs: "a script", Ratio: 0.5, Runs: 3}); r != want {
		t.Errorf("measure = %+v, want %+v", r, want)
	}
	want := []string{"ours", "limit", "limit", "ours", "ours", "limit", "limit", "ours", "end"}
	for i := range want {
		if calls[i] != want[i] {
			t.Fatalf("the order was %v, want %v", calls, want)
		}
	}
}

func TestAMeasurementThatFailsIsAnErrorAndEndsWhatItBegan(t *testing.T) {
	var calls []string
	if _, err := measure(t.Context(), scripted([]float64{1}, []float64{1, 1}, &calls), options{runs: 3}); err == nil {
		t.Error("no error")
	}
	if calls[len(calls)-1] != "end" {
		t.Errorf("the last call was %s, want end", calls[len(calls)-1])
	}
	if _, err := measure(t.Context(), scripted([]float64{1}, []float64{0}, &calls), options{runs: 1}); err == nil {
		t.Error("a limit of zero is no error")
	}
}

func TestFiguresArePrintedForPeopleAndForTools(t *testing.T) {
	var table, lines bytes.Buffer
	results := []result{{Figure: "a.b", Value: 1234, Unit: "µs", Limit: 617, LimitIs: "bare", Ratio: 2, Runs: 5}}
	if err := printTable(&table, results); err != nil {
		t.Fatal(err)
	}
	if err := printJSON(&lines, results); err != nil {
		t.Fatal(err)
	}
	if want := `{"figure":"a.b","value":1234,"unit":"µs","limit":617,"limit_is":"bare","ratio":2,"runs":5}` + "\n"; lines.String() != want {
		t.Errorf("JSON %q, want %q", lines.String(), want)
	}
	if !bytes.Contains(table.Bytes(), []byte("a.b")) || !bytes.Contains(table.Bytes(), []byte("2.00")) {
		t.Errorf("table %q", table.String())
	}
}
