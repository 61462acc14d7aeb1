package httpapi

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// told writes an event in words.
func told(t *testing.T, e api.Event) string {
	t.Helper()
	decode := func(into any) {
		t.Helper()
		if err := e.Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	switch e.Name {
	case api.EventOutput:
		var o api.LogOutput
		decode(&o)
		return fmt.Sprintf("%s %s %q", e.ID, o.Stream, o.Data())
	case api.EventStepStarted:
		var s api.LogStep
		decode(&s)
		return fmt.Sprintf("%s starts %d %s", e.ID, s.Step, s.Name)
	case api.EventStepFinished:
		var s api.LogStep
		decode(&s)
		return fmt.Sprintf("%s ends %d %s %d", e.ID, s.Step, s.Result.Class, *s.Result.ExitCode)
	case api.EventAnnotation, api.EventNotice:
		var n api.LogNote
		decode(&n)
		return fmt.Sprintf("%s %s %s %s:%d", e.ID, n.Level, n.Text, n.File, n.Line)
	case api.EventGap:
		var g api.LogGap
		decode(&g)
		return fmt.Sprintf("%s gap %d %s", e.ID, g.Bytes, g.Why)
	case api.EventEnd:
		var end api.LogEnd
		decode(&end)
		return fmt.Sprintf("end %s %v", end.Attempt.State, end.Complete)
	}
	return e.Name
}

func (w *world) log(c forge.AttemptContext, o api.LogOptions) []string {
	w.t.Helper()
	var got []string
	for e, err := range w.client.Log(w.ctx, c.Attempt.String(), o) {
		w.must(err)
		got = append(got, told(w.t, e))
	}
	return got
}

func (w *world) raw(c forge.AttemptContext, o api.LogOptions) string {
	w.t.Helper()
	body, err := w.client.RawLog(w.ctx, c.Attempt.String(), o)
	w.must(err)
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(body)
	w.must(err)
	return string(text)
}

var chatter = []forge.LogFrame{
	frame(forge.LogStructured, "s\x00"), frame(forge.LogStdout, "one\n"), frame(forge.LogStderr, "\xff\x00two"), frame(forge.LogAgent, "aside\n"),
	frame(forge.LogStructured, "a"), frame(forge.LogStructured, "n"), frame(forge.LogStructured, "g"), frame(forge.LogStructured, "?"),
	frame(forge.LogStdout, "\nthree"), frame(forge.LogStructured, "f\x00"),
}

var inWords = []string{
	`1 starts 0 say`, `2 stdout "one\n"`, `3 stderr "\xff\x00two"`, `4 agent "aside\n"`, `5 error bad a.go:7`, `6 notice hm :0`,
	`7 gap 9 more output than the log may have`, `8 gap 0 an event that this daemon does not know`, `9 stdout "\nthree"`, `10 ends 0 ExitCode 3`,
}

func TestALogIsReadAsEventsAndRaw(t *testing.T) {
	w := newWorld(t)
	a := w.agent("r")
	w.submit(job("a"))
	c := a.take()
	a.say(c, slices.Clone(chatter)...)
	if got := w.log(c, api.LogOptions{}); !slices.Equal(got, append(slices.Clone(inWords), "end Running false")) {
		t.Errorf("while it runs: %q", got)
	}
	a.end(c, forge.Result{Class: forge.Succeeded})
	if got := w.log(c, api.LogOptions{Follow: true}); !slices.Equal(got, append(slices.Clone(inWords), "end Succeeded true")) {
		t.Errorf("followed: %q", got)
	}
	if got := w.log(c, api.LogOptions{From: 9}); !slices.Equal(got, append(slices.Clone(inWords[8:]), "end Succeeded true")) {
		t.Errorf("from the ninth: %q", got)
	}
	if got := w.log(c, api.LogOptions{From: 11, Follow: true}); !slices.Equal(got, []string{"end Succeeded true"}) {
		t.Errorf("from behind the end: %q", got)
	}
	if got := w.raw(c, api.LogOptions{}); got != "one\n\xff\x00two\nthree" {
		t.Errorf("raw: %q", got)
	}
	if got := w.raw(c, api.LogOptions{From: 3, Follow: true}); got != "\xff\x00two\nthree" {
		t.Errorf("raw from the third: %q", got)
	}
	if got := w.log(c, api.LogOptions{Tail: 1}); len(got) >= len(inWords) || got[len(got)-1] != "end Succeeded true" {
		t.Errorf("tail: %q", got)
	}
}

// What is written while somebody follows arrives, and the stream ends with the attempt: the log is sealed before that.
func TestAFollowerHearsEverythingAndHowItEnded(t *testing.T) {
	w := newWorld(t)
	a := w.agent("r")
	w.submit(job("a"))
	c := a.take()
	a.say(c, frame(forge.LogStdout, "1"))
	n := 1
	var got []string
	for e, err := range w.client.Log(w.ctx, c.Attempt.String(), api.LogOptions{Follow: true}) {
		w.must(err)
		got = append(got, told(t, e))
		switch n++; {
		case n <= 4:
			a.say(c, frame(forge.LogStdout, fmt.Sprint(n)))
		case n == 5:
			a.seal(c)
			a.complete(c, forge.Result{Class: forge.Signal, Signal: 9})
		}
	}
	if want := []string{`1 stdout "1"`, `2 stdout "2"`, `3 stdout "3"`, `4 stdout "4"`, "end Failed true"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// The agent is gone for good, so nobody ever seals the log: whoever follows must not wait for that.
func TestTheLogOfALostAttemptEndsWithIt(t *testing.T) {
	w := newWorld(t)
	a := w.agent("r")
	w.submit(job("a"))
	c := a.take()
	a.say(c, frame(forge.LogStdout, "last words"))
	var got []string
	for e, err := range w.client.Log(w.ctx, c.Attempt.String(), api.LogOptions{Follow: true}) {
		w.must(err)
		if got = append(got, told(t, e)); len(got) == 1 {
			w.do(&authority.Expire{Context: c, State: forge.LeaseAccepted, Renewals: 1})
		}
	}
	if want := []string{`1 stdout "last words"`, "end Lost false"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestAStreamGoesOnBehindTheLastEvent(t *testing.T) {
	w := newWorld(t)
	a := w.agent("r")
	w.submit(job("a"))
	c := a.take()
	a.say(c, frame(forge.LogStdout, "1"), frame(forge.LogStdout, "2"), frame(forge.LogStdout, "3"))
	answer := w.ask("GET", "/api/v1/attempts/"+c.Attempt.String()+"/log?from_seq=1", "", "", api.HeaderLastEventID, "2")
	text, err := io.ReadAll(answer.Body)
	w.must(err)
	if s := string(text); !strings.HasPrefix(s, "id: 3\nevent: output\ndata: {") || strings.Count(s, "id: ") != 1 || !strings.HasSuffix(s, "\n\n") {
		t.Errorf("got %q", s)
	}
	if answer.Header.Get("Content-Type") != api.TypeEvents {
		t.Errorf("as %s", answer.Header.Get("Content-Type"))
	}
}

func TestAWatcherHearsEveryStateInWhichARunIsSeen(t *testing.T) {
	w := newWorld(t)
	a := w.agent("r")
	run := w.submit(job("a"))
	c := a.take()
	var got []string
	last := ""
	for e, err := range w.client.Watch(w.ctx, run.ID) {
		w.must(err)
		if e.Name == api.EventEnd {
			last = "end"
			continue
		}
		var change api.RunEvent
		w.must(e.Decode(&change))
		got = append(got, change.Kind+" "+change.From+">"+change.To)
		if change.Kind == "run" && change.To == "Running" {
			a.end(c, forge.Result{Class: forge.Succeeded})
		}
	}
	// Whether the run is seen before its start depends on who was faster; the rest is fixed.
	got = slices.DeleteFunc(got, func(s string) bool { return s == "run >Planned" })
	for _, want := range []string{"job >Active", "attempt >Running", "attempt Running>Succeeded", "job Active>Succeeded"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not among %q", want, got)
		}
	}
	if end := got[len(got)-1]; !strings.HasSuffix(end, ">Succeeded") || last != "end" {
		t.Errorf("ended with %q, %q", end, last)
	}
}

func TestStreamsEndWhenTheServerStops(t *testing.T) {
	w := newWorld(t)
	a := w.agent("r")
	w.submit(job("a"))
	c := a.take()
	a.say(c, frame(forge.LogStdout, "1"))
	answer := w.ask("GET", "/api/v1/attempts/"+c.Attempt.String()+"/log?follow=true", "", "")
	first := make([]byte, 6)
	if _, err := io.ReadFull(answer.Body, first); err != nil {
		t.Fatal(err)
	}
	w.server.Stop()
	w.server.Stop()
	if _, err := io.ReadAll(answer.Body); err == nil {
		t.Error("a stream that was cut looks whole")
	}
}
